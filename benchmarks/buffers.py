"""Buffers of made-up programs, as many as asked for, from a seed."""

import numpy as np

from tightship.planner import Problem

ALIGNMENT = 64
SEED = 2026


def train(count: int) -> Problem:
    """A training graph: activations of a forward pass, nested, and temporaries of both passes.

    A quarter of the buffers live from a forward step to its backward step, a quarter for up to 3
    steps forward, the rest for up to 5 steps backward. Sizes are of eight shapes.
    """
    rng = np.random.default_rng(SEED)
    layers = count // 4
    shapes = 65536 * rng.choice(np.array([1, 2, 4, 6, 8, 16, 32, 64]), 8)
    forward = np.arange(layers)
    backward = layers + np.arange(count - 2 * layers) // 2
    start = np.concatenate([forward, forward, backward])
    stop = np.concatenate(
        [
            2 * layers - forward + 1,
            forward + 1 + rng.integers(1, 4, layers),
            backward + 1 + rng.integers(1, 6, len(backward)),
        ]
    )
    return _problem(rng.choice(shapes, count), start, stop)


def rand(count: int) -> Problem:
    """Random intervals: between two random steps each; 64 bytes to 1 MiB, log-uniform."""
    rng = np.random.default_rng(SEED)
    ends = np.sort(rng.integers(0, count, (2, count)), axis=0)
    return _problem(_log_uniform(rng, 2**14, count), ends[0], ends[1] + 1)


def short(count: int) -> Problem:
    """A steady stream: some 25 buffers live at a time, 512 bytes to 512 KiB, uniform."""
    rng = np.random.default_rng(SEED)
    start = rng.integers(0, 2 * count, count)
    return _problem(
        512 * rng.integers(1, 1025, count), start, start + 1 + rng.geometric(1 / 50, count)
    )


GENERATORS = {"train": train, "rand": rand, "short": short}


def _log_uniform(
    rng: np.random.Generator, most: int, count: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return 64 * np.exp(rng.uniform(0, np.log(most), count)).astype(np.int64)


def _problem(
    size: np.ndarray[tuple[int], np.dtype[np.int64]],
    start: np.ndarray[tuple[int], np.dtype[np.int64]],
    stop: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Problem:
    return Problem(size, start, stop, np.full(len(size), ALIGNMENT, np.int64))
