"""Values in one another's bytes: residuals, views, and outputs that the caller has."""

from collections.abc import Callable

import numpy as np
import pytest

import tightship
from tests.zoo.arena import poison
from tests.zoo.net import Case, Net
from tests.zoo.oracle import assert_near, assert_same_bits, expected


def conv(net: Net, x: str) -> str:
    return net("Conv", x, net.weight(16, 16, 3, 3), net.bias(16), pads=[1, 1, 1, 1])


def start() -> tuple[Net, str, str]:
    """A net, its input, and a value in the arena, in the layout that convolutions like."""
    net = Net()
    x = net.normal("x", 1, 16, 5, 5)
    return net, x, net("Relu", conv(net, x))


def end(net: Net, *names: str) -> Case:
    """Output what each of the values gives when it is pooled, so that they lie in the arena."""
    net.output(*(net("MaxPool", name, kernel_shape=[2, 2]) for name in names))
    return net.case()


def residual_read_twice() -> Case:
    net, x, r = start()
    return end(net, net("Mul", net("Add", conv(net, net("Neg", x)), r), r))


def residual_read_again_as_a_view() -> Case:
    net, x, r = start()
    view = net("Identity", r)
    return end(net, net("Mul", net("Add", conv(net, net("Neg", x)), r), view))


def residual_convolved() -> Case:
    net, _, r = start()
    return end(net, net("Add", conv(net, r), r))


def residual_convolved_as_a_view() -> Case:
    net, _, r = start()
    return end(net, net("Add", conv(net, net("Identity", r)), r))


def residual_viewed_later() -> Case:
    net, x, r = start()
    view = net("Identity", r)
    y = net("Add", conv(net, net("Neg", x)), r)
    return end(net, y, net("Neg", view))


def residual_read_later() -> Case:
    net, x, r = start()
    y = net("Add", conv(net, net("Neg", x)), r)
    return end(net, y, net("Neg", r))


def residual_copied_and_read_later() -> Case:
    net = Net()
    x = net.normal("x", 1, 16, 5, 5)
    r = net("Relu", x)
    y = net("Add", conv(net, net("Neg", x)), r)
    return end(net, y, conv(net, r))


def residual_copied_and_convolved() -> Case:
    net = Net()
    r = net("Relu", net.normal("x", 1, 16, 5, 5))
    return end(net, net("Add", conv(net, r), r))


def residual_is_an_output() -> Case:
    net, x, r = start()
    net.output(r)
    return end(net, net("Add", conv(net, net("Neg", x)), r))


def sum_is_an_output() -> Case:
    net, x, r = start()
    net.output(net("Add", conv(net, net("Neg", x)), r))
    return net.case()


def sum_of_products_is_an_output() -> Case:
    net = Net()
    x = net.normal("x", 4, 16)
    r = net("Relu", x)
    net.output(net("Add", net("MatMul", net("Neg", x), net.weight(16, 16)), r))
    return net.case()


def sum_of_one_pixel_is_an_output() -> Case:
    net = Net()
    x = net.normal("x", 1, 1, 1, 1)
    r = net("Abs", x)
    net.output(net("Add", net("Conv", net("Neg", x), net.weight(1, 1, 1, 1)), r))
    return net.case()


def a_value_with_its_transpose() -> Case:
    net = Net()
    r = net("Relu", net.normal("x", 4, 4))
    net.output(net("Sub", r, net("Transpose", r, perm=[1, 0])), net("Softmax", r))
    return net.case()


def a_value_that_scales_itself() -> Case:
    net = Net()
    r = net("Relu", net.normal("x", 1, 8))
    scale = net("Reshape", r, net.ints(8))
    net.output(net("Neg", net("LayerNormalization", r, scale)))
    return net.case()


def one_value_is_three_outputs_and_an_input() -> Case:
    net, x, r = start()
    net.output(x, r, net("Identity", r), net("Reshape", r, net.ints(400)))
    return net.case()


def broadcast_over_a_transposed_axis_of_length_one() -> Case:
    net = Net()
    x = net("Transpose", net.normal("x", 1, 16, 3, 4), perm=[1, 2, 0, 3])
    net.output(net("Add", x, net.bias(3, 1, 1)), net("Max", x, net.scalar(0.1)))
    return net.case()


CASES = (
    residual_read_twice, residual_read_again_as_a_view, residual_convolved,
    residual_convolved_as_a_view, residual_viewed_later, residual_read_later,
    residual_copied_and_read_later, residual_copied_and_convolved, residual_is_an_output,
    sum_is_an_output, sum_of_products_is_an_output, sum_of_one_pixel_is_an_output,
    a_value_with_its_transpose, a_value_that_scales_itself,
    one_value_is_three_outputs_and_an_input, broadcast_over_a_transposed_axis_of_length_one,
)  # fmt: skip


@pytest.mark.parametrize("without", [(), ("onednn",)], ids=["onednn", "numpy"])
@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_values_in_one_anothers_bytes_stay_right(
    make: Callable[[], Case], without: tuple[str, ...]
) -> None:
    case = make()
    with tightship.load(case.model, without=without) as model:
        outputs = {
            name: np.full_like(array, np.nan)
            for name, array in expected(case.model, case.feeds).items()
        }
        results = model.run(case.feeds, outputs=outputs)
        assert_near(results, expected(case.model, case.feeds))
        poison(model)
        assert_same_bits(model.run(case.feeds), results)


def test_a_residual_that_dies_is_summed_in_place() -> None:
    net, x, r = start()
    case = end(net, net("Add", conv(net, net("Neg", x)), r))
    ours, apart = (tightship.plan(case.model, without=w) for w in ((), ("in_place",)))
    ties = [
        [t.name for t in plan.tensors if t.shares_with and t.shares_with.startswith(r)]
        for plan in (ours, apart)
    ]
    assert ties == [["add4"], []]


def test_a_sum_that_is_an_output_is_written_where_the_caller_has_it() -> None:
    plan = tightship.plan(sum_of_products_is_an_output().model)
    assert [step.kernel for step in plan.steps if step.operator == "Copy"] == []
    assert "add3" not in {tensor.name for tensor in plan.tensors}


def test_a_model_loaded_again_and_again_stays_right() -> None:
    net = Net()
    x = net.normal("x", 2, 4, 8)
    y = net("MatMul", x, net("Transpose", net("Relu", x), perm=[0, 2, 1]))
    y = net("Mul", y, net.scalar(0.25))
    net.output(net("MatMul", y, net.weight(4, 9)))
    case = net.case()
    wanted = expected(case.model, case.feeds)
    for _ in range(20):
        with tightship.load(case.model) as model:
            assert_near(model.run(case.feeds), wanted)
