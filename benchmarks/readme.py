"""Writes the tables of the README and of the page of measurements from the records in `results`.

    python -m benchmarks.readme

A figure is that of the newest record which has it, and a caption names the machine of that record.
Each of `TABLES` stands between two markers of a page, `<!-- NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from benchmarks.language_tables import decode_table, llama_table, text_memory, text_speed
from benchmarks.record import ROOT
from benchmarks.recorded import Row, isa_of, machine, mb, newest_of_each, records
from benchmarks.server_tables import http_table, joined_table

README = ROOT / "README.md"
MEASUREMENTS = ROOT / "docs/reference/measurements.md"
PAGES = (README, MEASUREMENTS)
BLOCK = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

NAMES = {
    "resnet50": "ResNet-50", "bert": "BERT-base, 128 tokens", "vgg19": "VGG-19",
    "densenet121": "DenseNet-121", "squeezenet": "SqueezeNet",
    "gpt2_block": "GPT-2 block, 128 tokens", "bvlc_alexnet": "AlexNet",
    "inception_v1": "Inception v1", "inception_v2": "Inception v2", "shufflenet": "ShuffleNet",
    "zfnet512": "ZFNet-512", "resnet50_folded": "ResNet-50, exported today",
    "mobilenet_v2": "MobileNetV2", "efficientnet_b0": "EfficientNet-B0", "yolo": "YOLOv8-like, 640",
    "unet": "U-Net", "unet_resized": "U-Net, resizing",
    "bert_decomposed": "BERT, 4 layers, decomposed", "gpt2": "GPT-2, 128 tokens",
    "gpt2_decomposed": "GPT-2, decomposed", "gpt2_decode": "GPT-2, one token after 128",
    "vit": "ViT-B/16", "vit_decomposed": "ViT, 4 layers, decomposed",
    "whisper_encoder": "Whisper encoder",
    "whisper_encoder_decomposed": "Whisper encoder, decomposed",
    "whisper_decoder": "Whisper decoder, one token", "lstm": "LSTM", "gru": "GRU",
    "lstm_bidirectional": "LSTM, both ways", "resnet50_int8": "ResNet-50 int8, QDQ",
    "resnet50_qlinear": "ResNet-50 int8, QLinear", "bert_int8": "BERT int8, dynamic",
    "detr": "DETR-like, 480", "faster_rcnn": "Faster R-CNN-like, 320",
    "mask_rcnn": "Mask R-CNN-like, 320",
    "faster_rcnn_small": "Faster R-CNN-like, 128", "mask_rcnn_small": "Mask R-CNN-like, 128",
    "ssdlite_small": "SSDlite-like, 128", "detr_small": "DETR-like, 64",
    "ssdlite": "SSDlite-like, 320", "yolo_suppressed": "YOLOv8-like, 640, with NMS",
    "ocr_detection": "OCR detection", "ocr_recognition": "OCR recognition",
    "ocr_direction": "OCR direction",
}  # fmt: skip
IN_MEMORY_TABLE = ("resnet50", "bert", "vgg19", "densenet121", "squeezenet", "gpt2_block")


def races(isa: str = "AMX") -> dict[tuple[str, int, str], Row]:
    """The newest row of each model, number of threads and contender, with its `record`.

    Only records of processors with this instruction set count: ratios differ from one to another.
    """
    found: dict[tuple[str, int, str], Row] = {}
    for record in records("bench_engine"):
        for row in record["rows"] if isa_of(record) == isa else ():
            key = row["model"], row["threads"], row["contender"]
            found.setdefault(key, {**row, "record": record})
    return found


def models_table() -> str:
    """Peak memory and time of six models, beside ONNX Runtime's default and leanest settings."""
    memory = records("bench_memory")[0]
    engines = [races(isa) for isa in ("AMX", "AVX-512", "AVX2")]
    rows = {row["model"]: row for row in memory["rows"]}
    lines = [
        "| model | Tightship, MB | ONNX Runtime, MB | its leanest settings "
        "| the same, file rewritten | time over ONNX Runtime's, AMX | AVX-512 | AVX2 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model in IN_MEMORY_TABLE:
        row = rows[model]
        ratios = [f"{engine[model, 1, 'tightship']['ratio']:.2f}" for engine in engines]
        lines.append(
            f"| {NAMES[model]} | {_resident(row['tightship'])} | {_resident(row['default'])} "
            f"| {_resident(row['best_as_given'])}{_slower(row)} "
            f"| {_resident(row['best_rewritten'])} | {' | '.join(ratios)} |"
        )
    timed = [
        machine(*(engine[model, 1, "tightship"]["record"] for model in IN_MEMORY_TABLE))
        for engine in engines
    ]
    return "\n".join([*lines, "", f"Memory: {machine(memory)}.",
                      f"Time, one thread: {'; '.join(timed)}."])  # fmt: skip


def memory_table() -> str:
    """Resident memory of processes, in MB, and the time of a run."""
    engine = races()
    rows = {row["model"]: row for row in records("bench_memory")[0]["rows"]}
    lines = [
        "| model | Tightship | planned of it | ONNX Runtime, default | its leanest settings, file "
        "as given | the same, file rewritten for it | time |",
        "|---|---|---|---|---|---|---|",
    ]
    for model in IN_MEMORY_TABLE:
        row = rows[model]
        leanest = _resident(row["best_as_given"])
        lines.append(
            f"| {NAMES[model]} | **{_resident(row['tightship'])}** "
            f"| {mb(row['tightship']['figures']['planned_bytes'])} | {_resident(row['default'])} "
            f"| {leanest}{_slower(row)} "
            f"| {_resident(row['best_rewritten'])} "
            f"| {engine[model, 1, 'tightship']['ratio']:.2f} |"
        )
    return "\n".join([*lines, "", f"{machine(records('bench_memory')[0])}."])


def _slower(row: Row) -> str:
    """Say how much longer the leanest settings take, if it is a fifth or more."""
    slower = _run_ms(row["best_as_given"]) / _run_ms(row["default"])
    return f", at {slower:.1f} times the time" if slower >= 1.2 else ""


def _run_ms(row: Row) -> float:
    return float(row["figures"]["run_ms"])


def _resident(row: Row) -> str:
    return mb(row["figures"]["high_water_bytes"])


def speed_table() -> str:
    """Time of a run over ONNX Runtime's, by model, batch and threads."""
    engine = races()
    lines = [
        "| model | ms, 1 thread | 1 thread | 2 threads | batch 8 | batch 8, 2 threads "
        "| 1 thread, best setting of ONNX Runtime |",
        "|---|---|---|---|---|---|---|",
    ]
    for model, title in NAMES.items():
        own = engine.get((model, 1, "tightship"))
        if own is not None:
            cells = [f"{own['median_ms']:.1f}", f"{own['ratio']:.2f}"]
            for name, threads in ((model, 2), (f"{model}@8", 1), (f"{model}@8", 2)):
                row = engine.get((name, threads, "tightship"))
                cells.append("" if row is None else f"{row['ratio']:.2f}")
            lines.append(f"| {title} | {' | '.join(cells)} | {best(engine, model)} |")
    sources = (row["record"] for row in engine.values() if row["contender"] == "tightship")
    return "\n".join([*lines, "", f"{machine(*sources)}."])


def short_speed_table(isa: str) -> str:
    """Time of a run over ONNX Runtime's on processors without tiles, by model and threads."""
    engine = races(isa)
    lines = ["| model | ms, 1 thread | 1 thread | 2 threads |", "|---|---|---|---|"]
    for model, title in NAMES.items():
        own = engine.get((model, 1, "tightship"))
        if own is not None:
            both = [f"{engine[model, count, 'tightship']['ratio']:.2f}" for count in (1, 2)]
            lines.append(f"| {title} | {own['median_ms']:.1f} | {' | '.join(both)} |")
    sources = (row["record"] for row in engine.values() if row["contender"] == "tightship")
    return "\n".join([*lines, "", f"{machine(*sources)}."])


def best(engine: Mapping[tuple[str, int, str], Row], model: str) -> str:
    """Ratio to ONNX Runtime's fastest setting, and which; empty where only its default ran."""
    variants = {
        contender: row["ratio"]
        for (name, threads, contender), row in engine.items()
        if (name, threads) == (model, 1) and contender.startswith("ort")
    }
    if len(variants) < 2:
        return ""
    fastest = min(variants, key=lambda contender: variants[contender])
    ratio = engine[model, 1, "tightship"]["ratio"] / variants[fastest]
    setting = fastest.partition("-")[2] or "default"
    return f"{ratio:.2f} ({setting})"


def coverage_table() -> str:
    """Cases of ONNX's node suite by the slowest tier they need."""
    every = records("node_coverage")
    columns = {", ".join(record["without"]) or "all": record for record in reversed(every)}
    lines = [
        "| cases of ONNX's node suite | " + " | ".join(_title(name) for name in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    tiers: Iterable[str] = every[0]["by_tier"]
    for tier in tiers:
        counts = " | ".join(str(record["by_tier"][tier]) for record in columns.values())
        lines.append(f"| at slowest {tier} | {counts} |" if tier != "none" else
                     f"| refused | {counts} |")  # fmt: skip
    for title, key in (("pass", "passing"), ("computing on oneDNN", "any_onednn")):
        counts = " | ".join(str(record[key]) for record in columns.values())
        lines.append(f"| {title} | {counts} |")
    return "\n".join([*lines, "", f"{machine(*columns.values())}."])


def _title(without: str) -> str:
    return "all tiers" if without == "all" else f"without `onnx.{without}`"


def share_table() -> str:
    """Format the memory of four processes with one model, and their speed."""
    record = records("bench_share")[0]
    ours, default, *others = record["together"]["contenders"]
    best = min(others, key=lambda row: row["pss_bytes"])
    rows = [
        ("four processes, 256 MiB of weights: sum of PSS, MB", _pss),
        ("a run, ms", _one_run_ms),
    ]
    lines = ["| | Tightship | ONNX Runtime, default | its leanest settings |", "|---|---|---|---|"]
    lines += [
        f"| {title} | **{cell(ours)}** | {cell(default)} | {cell(best)} |" for title, cell in rows
    ]
    for model, loaded in record["loading"].items():
        times = loaded["first_results"]
        cells = [f"{times[row['title']]['median_ms']:.0f}" for row in (ours, default, best)]
        title = {"products": "these weights", **NAMES}[model]
        lines.append(
            f"| {title}: from loading to the first result, ms | **{cells[0]}** "
            f"| {cells[1]} | {cells[2]} |"
        )
    return "\n".join([*lines, "", f"{machine(record)}."])


def _pss(row: Row) -> str:
    return mb(row["pss_bytes"])


def _one_run_ms(row: Row) -> str:
    return f"{row['run_ns'] / 1e6:.1f}"


def blocks_table() -> str:
    """Time of products by weights in blocks over ONNX Runtime's, and share of the bandwidth."""
    newest = newest_of_each(records("bench_block_product"), isa_of)
    lines = [
        "| processor | bits | activations | rows | 1 thread | 2 threads "
        "| bandwidth, 1 thread | 2 threads |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for isa, record in newest.items():
        cases: dict[tuple[int, int, int], list[Row]] = {}
        for row in record["rows"]:
            cases.setdefault((row["bits"], row["level"], row["rows"]), []).append(row)
        for (bits, level, count), both in cases.items():
            cells = [f"{row['ratio']:.2f}" for row in both]
            if count == 1:  # many rows are bound by arithmetic
                cells += [f"{row['bytes_per_s'] / row['read_bytes_per_s']:.2f}" for row in both]
            else:
                cells += ["", ""]
            kind = "int8" if level == 4 else "float32"
            lines.append(f"| {isa} | {bits} | {kind} | {count} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{machine(*newest.values())}."])


def precision_table() -> str:
    """Processor time, error and memory with products of bfloat16, beside float32."""
    newest = newest_of_each(records("bench_precision"), isa_of)
    lines = [
        "| processor | model | time, float32 | bfloat16 | error, bfloat16 | weights, MB "
        "| bfloat16 | arena, MB | bfloat16 |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for isa, record in newest.items():
        for row in record["rows"]:
            both = [row[precision] for precision in ("float32", "bfloat16")]
            times = [f"{each['cpu_ratio']:.2f}" for each in both]
            sizes = [mb(each[part]) for part in ("weights_bytes", "arena_bytes") for each in both]
            error = f"{both[1]['difference']:.1e}"
            lines.append(
                f"| {isa} | {NAMES[row['model']]} | {' | '.join(times)} | {error} "
                f"| {' | '.join(sizes)} |"
            )
    return "\n".join([*lines, "", f"{machine(*newest.values())}."])


TABLES: Mapping[str, Callable[[], str]] = {
    "models": models_table,
    "memory": memory_table,
    "share": share_table,
    "speed": speed_table,
    "speed_avx512": partial(short_speed_table, "AVX-512"),
    "speed_avx2": partial(short_speed_table, "AVX2"),
    "coverage": coverage_table,
    "blocks": blocks_table,
    "precision": precision_table,
    "decode": decode_table,
    "llama": llama_table,
    "text_speed": text_speed,
    "text_memory": text_memory,
    "joined": joined_table,
    "http": http_table,
}


def rendered(text: str) -> str:
    """The text with every table made anew.

    Raises:
        KeyError: A marker names no table.
    """
    return BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


def main() -> None:
    """Rewrite the pages."""
    for page in PAGES:
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
