"""A pool of processes, started as new interpreters, with one copy of the weights.

python examples/pool.py model.onnx 4
"""

import multiprocessing
import sys
from typing import Any

import numpy as np

import tightship

loaded: list[tightship.Model] = []
"""The model of a process of the pool."""


def load(path: str) -> None:
    """Called once in each process."""
    loaded.append(tightship.load(path, share=True))


def run(x: np.ndarray[Any, Any]) -> float:
    """Called for each piece of work, in any of them."""
    return float(np.sum(loaded[0](x)))


def main(path: str, processes: int) -> list[float]:
    """Run the model on a few inputs."""
    with tightship.load(path, share=True) as model:  # prepares it, unless another process has
        (shape,) = (shape for _, shape in model.input_types.values())
    inputs = [np.full(shape, number, np.float32) for number in range(8)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, load, (path,)) as pool:
        return pool.map(run, inputs)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print(*main(sys.argv[1], int(sys.argv[2])))
