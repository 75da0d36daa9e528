"""Parts of a value are read where they lie, and nothing is written over what they need."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.graphs import implementations, run
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near, expected
from tightship._core import HAS_ONEDNN
from tightship.frontend.onnx import read_bytes

HEADS, LENGTH, STEPS = 3, 8, 10


def mixed_case(take, batch=1):
    """Attention over queries, keys and values that `take` cuts out of one product."""
    net = Net(1)
    wide = 3 * HEADS * LENGTH
    x = net.normal("x", batch, STEPS, 16)
    query, key, value = take(net, net("Relu", net("MatMul", x, net.weight(16, wide))), batch)
    scores = net("MatMul", query, net("Transpose", key, perm=[0, 1, 3, 2]))
    mixed = net("MatMul", net("Softmax", scores, axis=-1), value)
    net.output(net("Transpose", mixed, perm=[0, 2, 1, 3]))
    return net.case()


def apart(net, part, batch):
    y = net("Reshape", part, net.ints(batch, STEPS, HEADS, LENGTH))
    return net("Transpose", y, perm=[0, 2, 1, 3])


def by_split(net, joined, batch):
    return [apart(net, part, batch) for part in net.many("Split", 3, joined, axis=2, num_outputs=3)]


def by_slice(net, joined, batch):
    each = HEADS * LENGTH
    bounds = [(-3 * each, each), (each, 2 * each), (2 * each, 1 << 40)]
    parts = [net("Slice", joined, net.ints(a), net.ints(b), net.ints(-1)) for a, b in bounds]
    return [apart(net, part, batch) for part in parts]


def by_gather(net, joined, batch):
    five = net("Reshape", joined, net.ints(batch, STEPS, 3, HEADS, LENGTH))
    first = net("Transpose", five, perm=[2, 0, 3, 1, 4])
    indices = (net.constant(np.int64(i)) for i in (0, 1, -1))
    return [net("Gather", first, index, axis=0) for index in indices]


def by_split_and_squeeze(net, joined, batch):
    five = net("Reshape", joined, net.ints(batch, STEPS, 3, HEADS, LENGTH))
    parts = net.many("Split", 3, net("Transpose", five, perm=[2, 0, 3, 1, 4]), axis=0,
                     num_outputs=3)  # fmt: skip
    return [net("Squeeze", part, net.ints(0)) for part in parts]


@pytest.mark.skipif(not HAS_ONEDNN, reason="without oneDNN parts are copies")
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("take", [by_split, by_slice, by_gather, by_split_and_squeeze])
def test_queries_keys_and_values_are_parts_of_one_product(take, batch):
    case = mixed_case(take, batch)
    graph = read_bytes(case.model)
    found = [operator for operator, _, _ in implementations(graph)]
    assert found == ["MatMul+Relu", "Attention"]
    assert_near(run(graph, (), case.feeds), expected(case.model, case.feeds))


@given(st.data())
def test_parts_may_be_joined_in_any_order(data):
    """Slices and transposes of a value, then a concatenation of them all."""
    net = Net(2)
    shape = data.draw(st.tuples(*[st.integers(2, 5)] * 3))
    source = net("Relu", net.normal("x", *shape))
    axis = data.draw(st.integers(0, 2))
    permutation = data.draw(st.permutations(range(3)))
    parts = []
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, shape[axis] - 1))
        stop = data.draw(st.integers(start + 1, shape[axis]))
        part = net("Slice", source, net.ints(start), net.ints(stop), net.ints(axis))
        parts.append(net("Transpose", part, perm=list(permutation)))
    net.output(net("Concat", *parts, axis=permutation.index(axis)))
    case = net.case()
    assert_near(run(read_bytes(case.model), (), case.feeds), expected(case.model, case.feeds))


def test_a_part_that_others_copy_is_a_copy():
    net = Net(3)
    x = net("Relu", net.normal("x", 1, 6, 8))
    left, right = net.many("Split", 2, x, axis=2, num_outputs=2)
    net.output(net("Sigmoid", left), net("Tanh", right))
    case = net.case()
    graph = read_bytes(case.model)
    assert "Split" in [operator for operator, _, _ in implementations(graph)]
    assert_near(run(graph, (), case.feeds), expected(case.model, case.feeds))


def test_an_empty_part_of_an_image_is_delivered():
    net = Net(1)
    x = net.normal("x", 1, 16, 6, 6)
    image = net("Conv", x, net.weight(16, 16, 1, 1))
    nothing = net("Slice", image, net.ints(0), net.ints(0), net.ints(1))
    net.output(nothing, image)
    case = net.case()
    assert_near(run(read_bytes(case.model), (), case.feeds), expected(case.model, case.feeds))
