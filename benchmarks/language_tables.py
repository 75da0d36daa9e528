"""Tables of language models for the page of measurements."""

from collections.abc import Iterable, Mapping

from benchmarks.recorded import Row, isa_of, machine, mb, newest_of_each, records

ACTIVATIONS = {
    "tightship-int8-float16": "int8", "tightship": "float32",
    "tightship-int8": "int8, caches of float32",
}  # fmt: skip
"""Types of a product's activations by contender of `bench_text`."""
CONTENDERS = {
    "tightship-int8-float16": "Tightship, int8", "tightship": "Tightship, float32",
    "tightship-int8": "Tightship, int8, caches of float32",
    "tightship-shared": "Tightship, `share=True`", "llama.cpp": "llama.cpp, repacked",
    "llama.cpp-unrepacked": "llama.cpp, not repacked",
    "openvino-genai": "OpenVINO GenAI", "onnxruntime-genai": "onnxruntime-genai",
}  # fmt: skip


def decode_table() -> str:
    """Tokens per second of decoders over ONNX Runtime's, and what a process gains, in MB."""
    newest = newest_of_each(records("bench_decode"), isa_of)
    lines = [
        "| processor | decoder | threads | prompt | step | gained, MB | ONNX Runtime |",
        "|---|---|---|---|---|---|---|",
    ]
    for isa, record in newest.items():
        for row in record["rows"]:
            ratios = [
                row[f"tightship_{part}_tokens_per_s"] / row[f"onnxruntime_{part}_tokens_per_s"]
                for part in ("prompt", "step")
            ]
            names = ("tightship_2048_gained_bytes", "onnxruntime_gained_bytes")
            gained = [mb(row[name]) if name in row else "" for name in names]
            lines.append(
                f"| {isa} | {row['model']} | {row['threads']} | {ratios[0]:.2f} "
                f"| {ratios[1]:.2f} | {' | '.join(gained)} |"
            )
    return "\n".join([*lines, "", f"{machine(*newest.values())}."])


def llama_table() -> str:
    """Tokens per second of Llamas in blocks, beside llama.cpp's and ONNX Runtime's."""
    runs = [record for record in records("bench_llama") if "speed" in record]
    newest = newest_of_each(runs, lambda record: (record["model"], isa_of(record)))
    lines = [
        "| file | processor | tokens | threads | per second | llama.cpp | ratio "
        "| over ONNX Runtime's |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (model, isa), record in newest.items():
        for row in record["speed"]:
            rates = [f"{row['tokens_per_s'][each]:.0f}" for each in ("tightship", "llama.cpp")]
            ratios = [_ratio(row["ratio_to"], peer) for peer in ("llama.cpp", "onnxruntime")]
            lines.append(
                f"| {model} | {isa} | {_tokens(row['command'])} | {row['threads']} "
                f"| {' | '.join(rates)} | {' | '.join(ratios)} |"
            )
    return "\n".join([*lines, "", f"{machine(*newest.values())}."])


def _ratio(ratios: Mapping[str, float], peer: str) -> str:
    return f"{ratios[peer]:.2f}" if peer in ratios else ""


def text_speed() -> str:
    """Tokens per second of models in GGUF files beside others', at one and two threads."""
    newest = _texts(ACTIVATIONS)
    lines = [
        "| file | processor | activations | tokens | per second | llama.cpp | over it "
        "| over OpenVINO GenAI | over onnxruntime-genai |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (model, isa, place), record in newest.items():
        kind = list(ACTIVATIONS)[place]
        for command in dict.fromkeys(row["command"] for row in record["speed"]):
            rows = [row for row in record["speed"] if row["command"] == command]
            rates = [
                " / ".join(f"{row['tokens_per_s'][each]:.0f}" for row in rows)
                for each in (kind, "llama.cpp")
            ]
            ratios = [
                " / ".join(_over(row, kind, peer) for row in rows if peer in row["tokens_per_s"])
                for peer in ("llama.cpp", "openvino-genai", "onnxruntime-genai")
            ]
            lines.append(
                f"| {model} | {isa} | {ACTIVATIONS[kind]} | {_tokens(command)} "
                f"| {' | '.join([*rates, *ratios])} |"
            )
    return "\n".join([*lines, "", f"{machine(*newest.values())}."])


def text_memory() -> str:
    """Memory of processes with a GGUF file in MiB, the first token, and eight sessions over one."""
    lines = [
        "| file | processor | | context 2,048: most resident, MiB | 32,768 | four processes, PSS "
        "| first token, s | eight sessions over one, 1 / 2 threads |",
        "|---|---|---|---|---|---|---|---|",
    ]
    newest = _texts(CONTENDERS)
    for (model, isa, place), record in newest.items():
        kind = list(CONTENDERS)[place]
        held = " | ".join(_held(record, kind))
        lines.append(f"| {model} | {isa} | {CONTENDERS[kind]} | {held} |")
    return "\n".join([*lines, "", f"{machine(*newest.values())}."])


def _texts(kinds: Iterable[str]) -> dict[tuple[str, str, int], Row]:
    """Return the newest record of each file, instruction set, and contender by its place."""
    found: dict[tuple[str, str, int], Row] = {}
    for record in records("bench_text"):
        held = {row["kind"] for row in record["memory"]}
        for place, kind in enumerate(kinds):
            if kind in held:
                found.setdefault((record["model"], isa_of(record), place), record)
    return dict(sorted(found.items()))


def _held(record: Row, kind: str) -> list[str]:
    """Return the cells of a contender: memory, seconds to the first token, sessions together."""
    rows = [row for row in record["memory"] if row["kind"] == kind]
    alone = {row["context"]: row["high_water_bytes"] for row in rows if "processes" not in row}
    (four,) = (row["pss_bytes"] for row in rows if "processes" in row)
    (first,) = (row["wall_s"] for row in record["first_token"] if row["kind"] == kind)
    together = [row["ratio_to_one"] for row in record["together"] if row["kind"] == kind]
    return [
        *(f"{each / 2**20:.0f}" for each in (alone[2048], alone[32768], four)),
        f"{first:.2f}",
        " / ".join(f"{ratio:.2f}" for ratio in together),
    ]


def _tokens(command: str) -> str:
    """Name a command of the contenders, as `steps 128`."""
    name, count = command.split()
    return f"prompt of {count}" if name == "prompt" else f"step after {count}"


def _over(row: Row, kind: str, peer: str) -> str:
    """Return the rate over a peer's: the median of the turns' ratios, where that was kept."""
    rates = row["tokens_per_s"]
    kept = row["ratio_to"][peer] if next(iter(rates)) == kind else None
    return f"{kept or rates[kind] / rates[peer]:.2f}"
