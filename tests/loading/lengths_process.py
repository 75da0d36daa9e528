"""A process that runs a model at several lengths: `python -m tests.loading.lengths_process`.

Writes how much its private memory has grown since the first length, arenas left out, and what it
has of weights. Ends when its input does, so that processes can have the weights mapped together.
"""

import json
import sys
from pathlib import Path

import numpy as np

import tightship

FIRST = (2, 16)
OTHERS = ((2, 24), (1, 24), (1, 1), (5, 7), (3, 64))


def private_dirty() -> int:
    """Bytes that this process has written to, and no other has."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not say")


def main(path: str, how: str, *names: str) -> None:
    def run(shape: tuple[int, int]) -> None:
        model.run({name: np.ones(shape, np.int64) for name in names})

    tightship.plan(path, shapes=dict.fromkeys(names, OTHERS[0]))  # what reads files is there then
    shapes = dict.fromkeys(names, FIRST)
    with tightship.load(path, shapes=shapes, share=how == "shared", idle_s=None) as model:
        run(FIRST)
        before, arena = private_dirty(), model.memory_stats().arena_bytes
        for shape in OTHERS:
            run(shape)
        stats = model.memory_stats()
        grown = private_dirty() - before - (stats.arena_bytes - arena)
        sizes = {"grown": grown, "own": stats.weights_bytes}
        sys.stdout.write(f"{json.dumps(sizes)}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
