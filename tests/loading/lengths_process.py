"""A process that runs a model at several lengths: `python -m tests.loading.lengths_process`.

Writes, in bytes: `grown`, by how much its private memory has grown since the first length, arenas
left out; `programs`, how much of that it says its programs are; `own`, what it has of weights;
`more`, by how much ten more lengths make it grow; `released`, how much letting go of programs gives
back, and `accounted`, how much of that it had said they were. Ends when its input does, so that
processes can have the weights mapped together.
"""

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

import tightship
from tightship.engine.library import release_heap

FIRST = (2, 16)
OTHERS = ((2, 24), (1, 24), (1, 1), (5, 7), (3, 64))
COMPUTING = ("cast", "elementwise", "gather", "generate", "movement")
MORE = tuple((2, length) for length in range(25, 35))


def private_dirty() -> int:
    """Bytes that this process has written to, and no other has."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not say")


def held(model: tightship.Model) -> int:
    """Bytes of private memory, arenas left out."""
    return private_dirty() - model.memory_stats().arena_bytes


def main(path: str, how: str, *names: str) -> None:
    def run(*shapes: tuple[int, int]) -> None:
        for shape in shapes:
            model.run({name: np.ones(shape, np.int64) for name in names})

    # Code that reads files and computes tables is imported once, whatever a process loads.
    tightship.plan(path, shapes=dict.fromkeys(names, OTHERS[0]))
    for module in COMPUTING:
        import_module(f"tightship.engine.kernels.{module}")
    shapes = dict.fromkeys(names, FIRST)
    with tightship.load(path, shapes=shapes, share=how == "shared", idle_s=None) as model:
        run(FIRST)
        before, programs = held(model), model.memory_stats().program_bytes
        run(*OTHERS)
        after, stats = held(model), model.memory_stats()
        run(*MORE)
        more = held(model) - after
        run(*MORE)
        last, said = held(model), model.memory_stats().program_bytes
        model.release_unused_memory()
        release_heap()
        sizes = {
            "grown": after - before,
            "programs": stats.program_bytes - programs,
            "own": stats.weights_bytes,
            "more": more,
            "released": last - held(model),
            "accounted": said - model.memory_stats().program_bytes,
        }
        sys.stdout.write(f"{json.dumps(sizes)}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
