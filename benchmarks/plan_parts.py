"""Time of a plan, part by part, in a fresh process.

    python -m benchmarks.plan_parts MODEL

Prints JSON: milliseconds by part, in order. It imports the layers below the public ones, for
each is a part.
"""

import json
import sys
import time
from collections.abc import Iterator
from importlib import import_module


def main(path: str) -> None:
    """Plan a model as `tightship plan` does, with a clock between the parts."""
    start = time.perf_counter_ns()
    times_ms = {}
    for part in parts(path):
        now = time.perf_counter_ns()
        times_ms[part] = round((now - start) / 1e6, 1)
        start = time.perf_counter_ns()
    print(json.dumps(times_ms))


def parts(path: str) -> Iterator[str]:
    """Do one part after another; the name of each comes when it is done."""
    import_module("numpy")
    yield "numpy"
    import_module("tightship.cli")
    yield "tightship"
    import_module("onnx")
    import_module("onnx.shape_inference")
    yield "onnx"
    from tightship.engine.library import open_library
    from tightship.engine.lower.selection import lower
    from tightship.engine.plan.placement import place
    from tightship.frontend.onnx import read

    graph = read(path)
    yield "read"
    open_library()
    yield "oneDNN"
    lowered = lower(graph, 1)
    yield "lower"
    place(lowered)
    yield "place"


if __name__ == "__main__":
    main(sys.argv[1])
