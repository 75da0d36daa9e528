"""Time of products by weights in quantized blocks, against ONNX Runtime's MatMulNBits.

    python -m benchmarks.bench_block_product [--quick] [--json] [--record]

A model is pairs of products, wide and back, whose weights are more than the caches hold. Both run
in turns in this process; a ratio is the median over rounds of our time over ONNX Runtime's of the
same round. Bytes a second count the blocks and scales of all weights, which a run reads once, and
stand beside those of a sum of an array in as many threads.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import onnxruntime
from benchmarks import record
from onnx import TensorProto, helper, numpy_helper

import tightship

BLOCK = 32
ROUNDS = 9
TURN_S = 0.2
ARRAY_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """Products of `rows` by `depth` x `columns` and back, `pairs` times."""

    rows: int
    depth: int
    columns: int
    pairs: int
    bits: int
    level: int

    @property
    def weight_bytes(self) -> int:
        """Bytes of blocks and of their float32 scales."""
        elements = 2 * self.pairs * self.depth * self.columns
        return elements * self.bits // 8 + elements // BLOCK * 4


CASES = [
    Case(rows, 2048, 8192, pairs, bits, level)
    for rows, pairs in ((1, 8), (16, 8), (128, 2), (512, 1))
    for bits in (4, 8)
    for level in (0, 4)
]
QUICK = [Case(rows, 256, 512, 1, 4, level) for rows in (1, 32) for level in (0, 4)]


def model_of(case: Case) -> bytes:
    """Write the chain of products."""
    random = np.random.default_rng(3)
    nodes, constants, name = [], [], "x"
    sizes = [(case.depth, case.columns), (case.columns, case.depth)] * case.pairs
    for index, (depth, columns) in enumerate(sizes):
        shape = (columns, depth // BLOCK, BLOCK * case.bits // 8)
        scales = random.uniform(0.5, 1.5, shape[:2]) / 2**case.bits / depth**0.5
        constants += [
            numpy_helper.from_array(random.integers(0, 256, shape, np.uint8), f"b{index}"),
            numpy_helper.from_array(scales.astype(np.float32), f"s{index}"),
        ]
        nodes.append(helper.make_node(
            "MatMulNBits", [name, f"b{index}", f"s{index}"], [f"y{index}"],
            domain="com.microsoft", K=depth, N=columns, bits=case.bits, block_size=BLOCK,
            accuracy_level=case.level,
        ))  # fmt: skip
        name = f"y{index}"
    x, y = (
        helper.make_tensor_value_info(each, TensorProto.FLOAT, [case.rows, case.depth])
        for each in ("x", name)
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "products", [x], [y], constants)
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return made


def row(case: Case, threads: int, rounds: int) -> dict[str, Any]:
    """Race one model; times are seconds."""
    data = model_of(case)
    x = np.random.default_rng(1).standard_normal((case.rows, case.depth), np.float32)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    theirs = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    with tightship.load(data, threads=threads) as model:
        runs = {
            "tightship": lambda: model.run({"x": x}),
            "onnxruntime": lambda: theirs.run(None, {"x": x}),
        }
        (ours,), (wanted,) = runs["tightship"]().values(), runs["onnxruntime"]()
        error = float(np.abs(ours - wanted).max() / np.abs(wanted).max())
        turns = [{name: _timed(run) for name, run in runs.items()} for _ in range(rounds)]
    best = {name: statistics.median(turn[name] for turn in turns) for name in runs}
    ratios = sorted(turn["tightship"] / turn["onnxruntime"] for turn in turns)
    return {
        **asdict(case), "threads": threads, "ratio": statistics.median(ratios),
        "quartiles": [ratios[rounds // 4], ratios[-1 - rounds // 4]],
        "seconds": best["tightship"], "onnxruntime_seconds": best["onnxruntime"],
        "bytes_per_s": case.weight_bytes / best["tightship"],
        "read_bytes_per_s": _read(threads), "difference": error,
    }  # fmt: skip


def _timed(run: Callable[[], object]) -> float:
    """Return the median seconds of the runs that fit a turn, at least three."""
    run()
    found: list[float] = []
    while len(found) < 3 or sum(found) < TURN_S:
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def _read(threads: int) -> float:
    """Return bytes a second of the fastest sum of an array in threads."""
    parts = np.array_split(np.ones(ARRAY_BYTES // 8, np.int64), threads)
    with ThreadPoolExecutor(threads) as pool:
        return ARRAY_BYTES / min(_timed(lambda: list(pool.map(np.sum, parts))) for _ in range(3))


def rows(*, quick: bool) -> Iterator[dict[str, Any]]:
    """Race all models at one thread and at two."""
    for case in QUICK if quick else CASES:
        for threads in (1, 2):
            yield row(case, threads, 1 if quick else ROUNDS)


def main() -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_block_product")
    parser.add_argument("--quick", action="store_true", help="small products, one round")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    options = parser.parse_args()
    line = record.begin("bench_block_product") if options.record else None
    found = []
    for each in rows(quick=options.quick):
        found.append(each)
        if not options.json:
            print(
                f"{each['rows']:4} rows  {each['bits']} bits  level {each['level']}  "
                f"{each['threads']} threads  ratio {each['ratio']:.2f} "
                f"({each['quartiles'][0]:.2f}-{each['quartiles'][1]:.2f})  "
                f"{each['bytes_per_s'] / 1e9:5.1f} of {each['read_bytes_per_s'] / 1e9:.1f} GB/s  "
                f"difference {each['difference']:.0e}",
                flush=True,
            )
        if line is not None:
            line.write({"rows": found})
    if options.json:
        print(json.dumps({"rows": found}))


if __name__ == "__main__":
    main()
