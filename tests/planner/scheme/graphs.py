"""The memory note's worked examples, and how a scheme's blocks are put to the test."""

import numpy as np

from tests.planner.oracles import Replay
from tightship.planner.problem import Problem
from tightship.planner.schedule import Alias, AliasKind, Schedule, ScheduledValue, Step
from tightship.planner.schedule_plan import Buffers

X = ScheduledValue("X", 64, external=True)


def over(output, source):
    return Alias(output, source, AliasKind.IN_PLACE)


def values(**sizes):
    """External `X`, and values by name in the order of their indices, from 1."""
    return (X, *(ScheduledValue(name, size) for name, size in sizes.items()))


def sigmoids(count, size=640):
    """A = fully_connected(X), and a chain of `count` sigmoids on it; the last one is kept."""
    names = [f"V{index}" for index in range(count + 1)]
    first = Step("fc", "FullyConnected", (0,), (1,))
    chain = (
        Step(f"sigmoid{i}", "Sigmoid", (i,), (i + 1,), 0, (over(i + 1, i),))
        for i in range(1, count + 1)
    )
    return Schedule(values(**dict.fromkeys(names, size)), (first, *chain), (count + 1,))


def trap():
    """B is read by C = sigmoid(B) and, later, by F = B + E: C must not be written over B."""
    steps = (
        Step("A", "FullyConnected", (0,), (1,)),
        Step("B", "FullyConnected", (1,), (2,)),
        Step("C", "Sigmoid", (2,), (3,), 0, (over(3, 2),)),
        Step("E", "Sigmoid", (3,), (4,), 0, (over(4, 3),)),
        Step("F", "Add", (2, 4), (5,), 0, (over(5, 2), over(5, 4))),
    )
    return Schedule(values(A=64, B=64, C=64, E=64, F=64), steps, (5,))


def different_shapes(b=640, e=320):
    """B is done with when E, of another shape, is computed."""
    steps = (
        Step("A", "FullyConnected", (0,), (1,)),
        Step("B", "FullyConnected", (1,), (2,)),
        Step("C", "FullyConnected", (2,), (3,)),
        Step("E", "Pooling", (3,), (4,)),
        Step("F", "Concat", (1, 4), (5,)),
    )
    return Schedule(values(A=64, B=b, C=100_000, E=e, F=64), steps, (5,))


def perceptron():
    """The forward pass of the note's two-layer perceptron: fc1, act1, fc2, out."""
    steps = (
        Step("fc1", "FullyConnected", (0,), (1,)),
        Step("act1", "Activation", (1,), (2,), 0, (over(2, 1),)),
        Step("fc2", "FullyConnected", (2,), (3,)),
        Step("out", "Softmax", (3,), (4,), 0, (over(4, 3),)),
    )
    return Schedule(values(fc1=512, act1=512, fc2=40, out=40), steps, (4,))


def replay(schedule, blocks):
    """Run the schedule over its blocks, side by side; every value must be whole when read."""
    sizes = np.array(blocks.size_bytes, np.int64)
    ones = np.ones(len(sizes), np.int64)
    side_by_side = Problem(sizes, ones - 1, ones, ones)
    buffers = Buffers(side_by_side, blocks.of_value, blocks.of_scratch, blocks.in_place)
    Replay(schedule, buffers, np.cumsum(sizes) - sizes).run()
