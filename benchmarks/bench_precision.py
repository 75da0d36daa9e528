"""Products of bfloat16 beside float32: time, error and planned memory of each model.

python -m benchmarks.bench_precision --record
python -m benchmarks.bench_precision --models resnet50,bert --threads 1,2

It needs a processor with AVX-512 BF16 or AMX.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from benchmarks import models, record
from benchmarks.bench_engine import REFERENCE, race

import tightship

NARROW = "tightship-float32_products"
MODELS = (
    "resnet50,mobilenet_v2,efficientnet_b0,densenet121,vgg19,unet,yolo,bert,vit,gpt2_decode,"
    "whisper_decoder,lstm,gru"
)
ROUNDS = 5


def compared(name: str, threads: int, folder: Path) -> dict[str, object]:
    """Race both precisions, and plan them.

    Ratios are of processor time to ONNX Runtime's; errors are the largest difference from its
    outputs over the largest of these.
    """
    rows, _ = race(name, threads, (REFERENCE, "tightship", NARROW), folder, ROUNDS)
    by_contender = {row.contender: row for row in rows}
    stored = models.stored(name, folder)
    with np.load(stored.feeds) as arrays:
        shapes = {each: arrays[each].shape for each in arrays}
    found: dict[str, object] = {"model": name, "threads": threads}
    for precision, contender in (("float32", "tightship"), ("bfloat16", NARROW)):
        plan = tightship.plan(stored.model, shapes=shapes, threads=threads, precision=precision)
        row = by_contender[contender]
        found[precision] = {
            "cpu_ratio": row.cpu_ratio,
            "ratio": row.ratio,
            "difference": row.difference,
            "weights_bytes": plan.weights_bytes,
            "arena_bytes": plan.arena_bytes,
        }
    return found


def main() -> None:
    """Compare, print and record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_precision")
    parser.add_argument("--models", default=MODELS, help="comma-separated")
    parser.add_argument("--threads", default="1", help="comma-separated counts")
    parser.add_argument("--folder", type=Path, help="keep the models here between runs")
    parser.add_argument("--record", action="store_true", help="keep the figures")
    options = parser.parse_args()
    kept = record.begin("bench_precision") if options.record else None
    rows = []
    with tempfile.TemporaryDirectory(prefix="tightship-bench-") as temporary:
        folder = options.folder or Path(temporary)
        for name in models.chosen(options.models):
            for threads in map(int, options.threads.split(",")):
                rows.append(compared(name, threads, folder))
                print(json.dumps(rows[-1]), flush=True)
    if kept is not None:
        kept.write({"rows": rows})


if __name__ == "__main__":
    main()
