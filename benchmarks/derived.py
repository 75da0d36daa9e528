"""Instances made of others that stay feasible and are no easier to find a plan for."""

import random
from dataclasses import replace

import numpy as np

from tightship.planner import Problem

UNIT_BYTES = 1024
"""Bytes that a buffer may lose."""

SHRUNK = 0.05
"""The part of the buffers that lose a unit."""


def derived(problem: Problem, seed: int) -> Problem:
    """The problem with some buffers a unit smaller, rows shuffled, and time reversed or not.

    A plan of the problem is one of this, too: it fits whatever capacity the problem fits.
    """
    drawn = random.Random(f"{problem.count} {seed}")
    loses = np.array([drawn.random() < SHRUNK for _ in range(problem.count)])
    size = problem.size_bytes - UNIT_BYTES * (loses & (problem.size_bytes > UNIT_BYTES))
    order = list(range(problem.count))
    drawn.shuffle(order)
    start, stop = problem.start_step, problem.stop_step
    if seed % 2:
        end = int(stop.max(initial=0))
        start, stop = end - stop, end - start
    return replace(
        problem,
        size_bytes=size[order],
        start_step=start[order],
        stop_step=stop[order],
        alignment=problem.alignment[order],
        names=tuple(f"derived{index}" for index in range(problem.count)),
    )
