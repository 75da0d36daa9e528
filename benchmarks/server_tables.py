"""Tables of the server for the page of measurements."""

from collections.abc import Mapping

from benchmarks.recorded import Row, isa_of, machine, records

MODELS = {
    "wide": "192 MiB", "middle": "8 MiB", "small": "32 KiB", "decoder": "decoder", "vgg19": "VGG-19"
}  # fmt: skip
"""Models of `served_models`, stacks of products by their weights."""
CONTENDERS = ("alone", "joined", "onnxruntime joined")


def joined_table() -> str:
    """Requests per second and milliseconds of a request, joined, single, and ONNX Runtime's."""
    newest: dict[tuple[str, int], tuple[Row, Row]] = {}
    for record in records("bench_serve"):
        for row in record["rows"]:
            place = isa_of(record), list(MODELS).index(row["model"])
            newest.setdefault(place, (row, record))
    lines = [
        "| processor | model | single: per s, p50, p99 | joined | ONNX Runtime, joined "
        "| joined over single | joined over ONNX Runtime |",
        "|---|---|---|---|---|---|---|",
    ]
    for (isa, _), (row, _) in sorted(newest.items(), key=lambda each: each[0]):
        ratios = f"{row['joined_over_alone']:.2f} | {row['joined_over_onnxruntime']:.2f}"
        lines.append(
            f"| {isa} | {MODELS[row['model']]} "
            f"| {' | '.join(_load(row[each]) for each in CONTENDERS)} | {ratios} |"
        )
    sources = [record for _, record in newest.values()]
    return "\n".join([*lines, "", f"{machine(*sources)}."])


def http_table() -> str:
    """Requests per second over HTTP, joined too, beside FastAPI with ONNX Runtime."""
    newest = records("bench_http")[0]
    lines = [
        "| weights | clients | Tightship: per s, p50, p99 | joined | FastAPI | over FastAPI "
        "| joined over single | resident, MiB: single | joined | FastAPI |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in newest["rows"]:
        every = [row[each] for each in ("tightship", "tightship joined", "fastapi")]
        ratios = [row[each] for each in ("tightship_over_fastapi", "joined_over_tightship")]
        cells = [
            MODELS[row["model"]],
            str(row["clients"]),
            *map(_load, every),
            *(f"{each:.2f}" for each in ratios),
            *(f"{each['resident_mib']:.0f}" for each in every),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{machine(newest)}."])


def _load(figures: Mapping[str, float]) -> str:
    """Write requests per second, and the median and 99th percentile in milliseconds."""
    waits = (figures["p50_ms"], figures["p99_ms"])
    return ", ".join([f"{figures['per_s']:.0f}", *(f"{ms:.{int(ms < 10)}f}" for ms in waits)])
