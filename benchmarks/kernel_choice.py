"""Compare the kernels that are chosen for convolutions with all others that there are.

    python -m benchmarks.kernel_choice [--rounds 7] [--only window] [--json] [--record]

Each shape is a model of one convolution and Relu, on one thread. It is loaded as usual, and with
each choice left out that may concern it: products instead of lone pixels, depthwise planes,
Winograd's algorithm, streamed weights, products in parts, the library's layouts, the native
kernels, and oneDNN. Programs that differ take turns, and ONNX Runtime among them. Figures are
medians of processor time. A choice costs the chosen one's time over the least; beyond 1.1 it is
named. Copies into and out of a layout belong to a shape's time, as a model of one convolution has
both.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime
from benchmarks import record
from onnx import TensorProto, helper, numpy_helper

import tightship

CHOICES = (
    "multiply_pixels",
    "convolve_planes",
    "winograd",
    "stream_weights",
    "split_products",
    "library_layouts",
    "native",
    "onednn",
)
NAMED = 1.1
"""Time over the least from which a choice is named."""
LEAST_S = 0.02
"""Processor time of one figure, so that its clock is fine enough."""
SLOW = 4.0
"""Times as long as the choice takes from which an alternative is not measured again."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Convolution: [batch, channels, *image] by [outputs, channels / groups, *kernel]."""

    group: str
    image: tuple[int, ...]
    outputs: int
    kernel: tuple[int, ...]
    stride: int = 1
    groups: int = 1

    @property
    def name(self) -> str:
        """Image, outputs and kernel, and strides and groups other than 1."""
        parts = ["x".join(map(str, self.image)), str(self.outputs), "x".join(map(str, self.kernel))]
        more = [f"/{self.stride}"] * (self.stride > 1) + [f"g{self.groups}"] * (self.groups > 1)
        return " ".join([*parts, *more])


def shapes() -> Iterator[Shape]:
    """Return shapes of networks, and those between them."""
    for side, channels in ((112, 32), (56, 64), (28, 128), (14, 256), (7, 512)):
        image = (1, channels, side, side)
        yield Shape("window", image, channels, (3, 3))
        yield Shape("window", image, 2 * channels, (3, 3), stride=2)
        yield Shape("pixel", image, 4 * channels, (1, 1))
        yield Shape("pixel", (1, 4 * channels, side, side), channels, (1, 1))
        yield Shape("depthwise", image, channels, (3, 3), groups=channels)
        yield Shape("depthwise", image, channels, (5, 5), stride=2, groups=channels)
    for side, channels, outputs in ((64, 20, 36), (33, 33, 65), (19, 7, 100), (40, 130, 10)):
        yield Shape("odd", (1, channels, side, side), outputs, (3, 3))
        yield Shape("odd", (1, channels, side, side), outputs, (1, 1))
    for length, channels, outputs, kernel in (
        (16000, 1, 512, 10),
        (3199, 512, 512, 3),
        (512, 256, 508, 5),
        (1500, 384, 384, 3),
        (200, 80, 384, 3),
        (4000, 64, 64, 11),
    ):
        stride = 5 if channels == 1 else 1
        yield Shape("one axis", (1, channels, length), outputs, (kernel,), stride)
        yield Shape("one axis", (1, channels, length, 1), outputs, (kernel, 1), stride)
    for rows, channels in ((1, 512), (2, 256), (3, 960), (1, 2048)):
        yield Shape("few rows", (1, channels, rows, rows), 1000, (1, 1))
        yield Shape("few rows", (1, channels // 2, rows, 40), 256, (1, 3))
    yield Shape("first", (1, 3, 224, 224), 64, (7, 7), stride=2)
    yield Shape("first", (1, 3, 224, 224), 32, (3, 3), stride=2)
    yield Shape("first", (1, 1, 64, 256), 64, (3, 3))
    yield Shape("batch", (8, 64, 56, 56), 64, (3, 3))
    yield Shape("batch", (8, 256, 14, 14), 256, (3, 3))
    yield Shape("batch", (16, 512, 7, 7), 2048, (1, 1))
    yield Shape("groups", (1, 128, 28, 28), 128, (3, 3), groups=32)
    yield Shape("groups", (1, 256, 14, 14), 256, (3, 3), groups=4)


def model_of(shape: Shape) -> tuple[bytes, dict[str, np.ndarray[Any, Any]]]:
    """Return a model of a convolution with padding and Relu, and its input."""
    random = np.random.default_rng(0)
    each = shape.image[1] // shape.groups
    weights = random.standard_normal((shape.outputs, each, *shape.kernel), np.float32) * 0.05
    bias = random.standard_normal(shape.outputs, np.float32)
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], group=shape.groups,
            strides=[shape.stride if length > 1 else 1 for length in shape.kernel],
            pads=[length // 2 for length in shape.kernel] * 2,
        ),
        helper.make_node("Relu", ["c"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape.image)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")],
    )
    opset = [helper.make_opsetid("", 17)]
    file = helper.make_model(graph, opset_imports=opset, ir_version=8)
    given = {"x": random.standard_normal(shape.image, np.float32)}
    return onnx.shape_inference.infer_shapes(file).SerializeToString(), given


def contenders(
    data: bytes, given: Mapping[str, np.ndarray[Any, Any]], opened: ExitStack
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """Return runs by name, of programs that differ, and the implementations of their steps."""
    runs: dict[str, Callable[[], object]] = {}
    programs: dict[str, str] = {}
    for left_out in (None, *CHOICES):
        without = (left_out,) if left_out else ()
        try:
            model = opened.enter_context(tightship.load(data, without=without))
        except tightship.errors.TightshipError:
            continue  # nothing else computes it
        steps = " + ".join(step.implementation for step in model.plan.steps)
        if steps in programs.values():
            continue
        name = f"without {left_out}" if left_out else "chosen"
        programs[name] = steps
        taken = {each: np.empty(size, np.float32) for each, size in outputs_of(model)}
        runs[name] = partial(model.run, given, outputs=taken)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
    runs["onnxruntime"] = lambda: session.run(None, dict(given))
    return runs, programs


def outputs_of(model: tightship.Model) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return names and shapes of outputs."""
    for name, (_, shape) in model.output_types.items():
        assert shape is not None, name
        yield name, shape


def measured(shape: Shape, rounds: int) -> dict[str, Any]:
    """Measure a shape: milliseconds by program, and the chosen one's over the least of ours."""
    data, given = model_of(shape)
    with ExitStack() as opened:
        runs, programs = contenders(data, given, opened)
        counts = {}
        for name, run in runs.items():
            run()
            counts[name] = max(1, int(LEAST_S / max(seconds(run, 3), 1e-6)))
        found: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                if found[name] and found[name][0] > SLOW * found["chosen"][0]:
                    continue
                found[name].append(seconds(run, counts[name]))
    times = {name: 1e3 * median(each) for name, each in found.items()}
    ours = {name: each for name, each in times.items() if name != "onnxruntime"}
    best = min(ours, key=ours.__getitem__)
    return {
        "group": shape.group,
        "shape": shape.name,
        "ms": {name: round(each, 4) for name, each in times.items()},
        "programs": programs,
        "best": best,
        "over_best": round(times["chosen"] / times[best], 3),
        "over_onnxruntime": round(times["chosen"] / times["onnxruntime"], 3),
    }


def seconds(run: Callable[[], object], count: int) -> float:
    """Return the processor time of a run, of so many."""
    start = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - start) / count


def line_of(row: Mapping[str, Any]) -> str:
    """Return a row of the table."""
    mark = f"{row['best']}: {row['programs'][row['best']]}" if row["over_best"] > NAMED else ""
    said = f"{row['group']:10}{row['shape']:28}{row['programs']['chosen'][:26]:27}"
    return f"{said}{row['over_best']:5.2f}{row['over_onnxruntime']:6.2f}  {mark}"


def main() -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernel_choice")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", help="one group of shapes; records nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    options = parser.parse_args()
    rows = []
    if not options.json:
        sys.stdout.write(f"{'shape':38}{'chosen':27}{'/best':>5}{'/ORT':>6}\n")
    for shape in shapes():
        if options.only in (None, shape.group):
            rows.append(measured(shape, options.rounds))
            if not options.json:
                sys.stdout.write(line_of(rows[-1]) + "\n")
                sys.stdout.flush()
    costs = [row["over_best"] for row in rows]
    figures = {
        "rows": rows,
        "median_over_best": median(costs),
        "most_over_best": max(costs),
        "named": sum(cost > NAMED for cost in costs),
        "median_over_onnxruntime": round(median([r["over_onnxruntime"] for r in rows]), 3),
    }
    said = {name: value for name, value in figures.items() if name != "rows"}
    sys.stdout.write(json.dumps(figures if options.json else said) + "\n")
    if options.record and not options.only:
        record.append("kernel_choice", figures)


if __name__ == "__main__":
    main()
