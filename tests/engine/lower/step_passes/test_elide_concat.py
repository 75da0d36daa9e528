"""Concatenations that vanish because what is joined is written at its place."""

from collections.abc import Callable

import pytest

import tightship
from tests.zoo.arena import LARGE, poison
from tests.zoo.net import Case, Net
from tests.zoo.oracle import assert_near, assert_same_bits, expected
from tightship import _core

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


def rows(net: Net, *counts: int) -> list[str]:
    """Values of so many rows of 16 in the arena."""
    return [net("Softmax", net.normal(f"x{i}", n, 16)) for i, n in enumerate(counts)]


def end(net: Net, *names: str) -> Case:
    net.output(*(net("Softmax", name, axis=-1) for name in names))
    return net.case()


def joined() -> Case:
    net = Net()
    return end(net, net("Concat", *rows(net, 4, 8, 1), axis=0))


def nested() -> Case:
    net = Net()
    a, b, c, d = rows(net, 4, 8, 2, 3)
    inner = net("Concat", a, b, axis=0)
    return end(net, net("Concat", c, net("Concat", inner, d, axis=0), axis=0), inner)


def joined_anew_and_longer() -> Case:
    net = Net()
    a, b, c = rows(net, 4, 8, 2)
    return end(net, net("Concat", a, b, axis=0), net("Concat", a, b, c, axis=0))


def joined_in_two_ways() -> Case:
    net = Net()
    a, b = rows(net, 4, 8)
    return end(net, net("Concat", a, b, axis=0), net("Concat", b, a, axis=0))


def joined_with_itself() -> Case:
    net = Net()
    (a,) = rows(net, 4)
    return end(net, net("Concat", a, a, axis=0))


def part_read_before_and_after() -> Case:
    net = Net()
    a, b = rows(net, 4, 8)
    early = net("Exp", a)
    y = net("Concat", a, b, axis=0)
    return end(net, net("Exp", y), net("Neg", a), early)


def part_written_in_place() -> Case:
    net = Net()
    a, b = rows(net, 4, 8)
    return end(net, net("Concat", net("Exp", a), net("Abs", net("Neg", b)), axis=0))


def result_added_to_a_part() -> Case:
    net = Net()
    a, b = rows(net, 1, 3)
    return end(net, net("Add", net("Concat", a, b, axis=0), a))


def residual() -> Case:
    net = Net()
    r, a = rows(net, 4, 8)
    y = net("Add", net("MatMul", net.normal("y", 4, 16), net.weight(16, 16)), r)
    return end(net, net("Concat", y, a, axis=0))


def an_output() -> Case:
    net = Net()
    net.output(net("Concat", *rows(net, 4, 8), axis=0))
    return net.case()


def an_input() -> Case:
    net = Net()
    return end(net, net("Concat", net.normal("x", 4, 16), *rows(net, 8), axis=0))


def along_the_inner_axis() -> Case:
    net = Net()
    a, b = (net("Softmax", net.normal(f"x{i}", 4, 16)) for i in range(2))
    return end(net, net("Concat", a, b, axis=1))


def not_aligned() -> Case:
    net = Net()
    a, b = (net("Softmax", net.normal(f"x{i}", n, 3)) for i, n in enumerate((5, 7)))
    return end(net, net("Concat", a, b, axis=0))


CASES: dict[Callable[[], Case], int] = {
    joined: 0, nested: 0, joined_anew_and_longer: 0, joined_in_two_ways: 1, joined_with_itself: 1,
    part_read_before_and_after: 0, part_written_in_place: 0, result_added_to_a_part: 0,
    residual: 1, an_output: 1, an_input: 1, along_the_inner_axis: 1, not_aligned: 1,
}  # fmt: skip
"""Number of concatenations of each case that are left.

A product adds to the bytes of `r`.
"""


def concats(plan: tightship.MemoryPlan) -> int:
    return sum(step.operator == "Concat" for step in plan.steps)


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_what_is_joined_is_right_wherever_it_is_written(make: Callable[[], Case]) -> None:
    case = make()
    with tightship.load(case.model) as model:
        assert concats(model.plan) == CASES[make]
        results = model.run(case.feeds)
        assert_near(results, expected(case.model, case.feeds))
        for byte in (0xFF, LARGE):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds), results)
    apart = tightship.plan(case.model, without=("elide_concat",))
    assert model.plan.lower_bound_bytes <= apart.lower_bound_bytes
    assert concats(apart) >= 1


def test_a_result_is_not_reserved_while_others_need_the_room() -> None:
    net = Net()
    (a,) = rows(net, 4)
    x = net("Softmax", net.normal("x", 64, 512))
    y = net("MatMul", net("MatMul", x, net.weight(512, 512)), net.weight(512, 16))
    net.output(net("Softmax", net("Concat", a, y, axis=0)))
    wide = net.case()
    tight = tightship.plan(wide.model)
    assert tight.lower_bound_bytes <= tightship.plan(
        wide.model, without=("elide_concat",)
    ).lower_bound_bytes  # fmt: skip


def growing() -> Case:
    """Layers that each add 32 channels to what all before them made."""
    net = Net()
    x = net("Relu", net("Conv", net.normal("x", 1, 16, 24, 24), net.weight(64, 16, 1, 1)))
    for depth in range(4):
        channels = 64 + 32 * depth
        y = net("Relu", net("Conv", net("Relu", x), net.weight(32, channels, 1, 1)))
        x = net("Concat", x, y, axis=1)
    net.output(net("GlobalAveragePool", x))
    return net.case()


def test_a_network_that_mostly_joins_has_its_channels_in_blocks_and_joins_none() -> None:
    case = growing()
    with tightship.load(case.model) as model:
        assert model.plan.key["layouts"] == "blocked"
        assert concats(model.plan) == 0
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))
    other = tightship.plan(case.model, without=("blocked_layouts",))
    assert other.key["layouts"] == "library"
    assert concats(other) == 4
    assert model.plan.lower_bound_bytes <= other.lower_bound_bytes


def test_the_same_model_gives_the_same_plan() -> None:
    case = growing()
    one, two = (tightship.plan(case.model) for _ in range(2))
    assert (one.key, one.tensors, one.steps) == (two.key, two.tensors, two.steps)
