"""ONNX's Attention against `onnx.reference`, which is its definition."""

import math

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.engine.graphs import implementations, run
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near
from tightship.frontend.onnx import read_bytes

BATCH, HEADS, SHARED, QUERIES, KEYS, DEPTH, WIDTH = 2, 4, 2, 5, 6, 8, 12


def assert_as_defined(net, *, is_fast=True):
    case = net.case()
    names = [output.name for output in net.graph().output]
    want = dict(zip(names, ReferenceEvaluator(case.model).run(None, case.feeds), strict=True))
    graph = read_bytes(case.model)
    kernels = {kernel for _, kernel, _ in implementations(graph)}
    assert ("reference" not in kernels) is is_fast
    assert_near(run(graph, (), case.feeds), want)


def operands(net, flat, heads=HEADS):
    shapes = [(HEADS, QUERIES, DEPTH), (heads, KEYS, DEPTH), (heads, KEYS, WIDTH)]
    names = ("query", "key", "value")
    if flat:
        return [
            net.normal(name, BATCH, rows, count * columns)
            for name, (count, rows, columns) in zip(names, shapes, strict=True)
        ]
    return [net.normal(name, BATCH, *shape) for name, shape in zip(names, shapes, strict=True)]


MASKS = {
    "none": lambda _: None,
    "added": lambda random: random.standard_normal((BATCH, 1, QUERIES, KEYS)).astype(np.float32),
    "added to all": lambda random: random.standard_normal((QUERIES, KEYS)).astype(np.float32),
    "by heads": lambda random: random.standard_normal((HEADS, QUERIES, KEYS)).astype(np.float32),
    "kept": lambda random: random.random((BATCH, 1, QUERIES, KEYS)) < 0.7,
    "no key seen": lambda _: np.arange(QUERIES)[:, None] + np.zeros((1, KEYS)) != 2,
}


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
def test_masks_and_shapes(opset, mask, causal, flat):
    net = Net(1, opset)
    inputs = operands(net, flat)
    array = MASKS[mask](net.random)
    if array is not None:
        inputs.append(net.input("mask", array))
    heads = {"q_num_heads": HEADS, "kv_num_heads": HEADS} if flat else {}
    net.output(net("Attention", *inputs, is_causal=causal, **heads))
    assert_as_defined(net)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("causal", [0, 1])
def test_past_keys_come_before_new_ones_which_fewer_heads_share(flat, causal):
    net = Net(2, 23)
    inputs = operands(net, flat, SHARED)
    past = [net.normal(f"past_{part}", BATCH, SHARED, 3, columns)
            for part, columns in (("key", DEPTH), ("value", WIDTH))]  # fmt: skip
    heads = {"q_num_heads": HEADS, "kv_num_heads": SHARED} if flat else {}
    net.output(*net.many("Attention", 3, *inputs, "", *past, scale=0.4, is_causal=causal, **heads))
    assert_as_defined(net)


def test_present_keys_whose_shapes_are_not_inferred_are_left_to_the_reference():
    net = Net(3, 23)
    net.output(*net.many("Attention", 3, *operands(net, flat=False)))
    assert_as_defined(net, is_fast=False)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("opset", [23, 24])
def test_soft_caps_come_before_masks(causal, flat, opset):
    net = Net(4, opset)
    inputs = operands(net, flat)
    mask = np.where(np.arange(KEYS) % 3 != 1, 0, -np.inf) + np.zeros((QUERIES, KEYS))
    inputs.append(net.input("mask", mask.astype(np.float32)))
    heads = {"q_num_heads": HEADS, "kv_num_heads": HEADS} if flat else {}
    net.output(net("Attention", *inputs, softcap=0.7, is_causal=causal, **heads))
    assert_as_defined(net)


WINDOWS = [(2, -1), (-1, 1), (3, 0), (0, 0), (1, 2)]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("cached", ["", "past", "padded"])
def test_windows_are_around_positions(window, causal, cached):
    net = Net(6, 25)
    inputs = operands(net, flat=False)
    if cached == "past":
        inputs += ["", *(net.normal(f"past_{part}", BATCH, HEADS, 3, columns)
                         for part, columns in (("key", DEPTH), ("value", WIDTH)))]  # fmt: skip
    if cached == "padded":
        inputs += ["", "", "", net.input("lengths", np.array([5, 6], np.int64))]
    left, right = window
    bounds = {"left_window_size": left, "right_window_size": right}
    outputs = net.many("Attention", 3 if cached == "past" else 1, *inputs, is_causal=causal,
                       **bounds)  # fmt: skip
    net.output(*outputs)
    assert_as_defined(net)


@pytest.mark.parametrize("lengths", [[6, 5], [3, 6], [1, 0]])
@pytest.mark.parametrize("mask", ["none", "added", "kept"])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("flat", [False, True])
def test_caches_are_used_up_to_each_row_s_length(lengths, mask, causal, flat):
    net = Net(7, 24)
    inputs = operands(net, flat, SHARED)
    array = MASKS[mask](net.random)
    inputs += ["" if array is None else net.input("mask", array), "", ""]
    inputs.append(net.input("lengths", np.array(lengths, np.int64)))
    heads = {"q_num_heads": HEADS, "kv_num_heads": SHARED} if flat else {}
    net.output(net("Attention", *inputs, is_causal=causal, **heads))
    assert_as_defined(net)


def test_a_softmax_in_float64_is_left_to_the_reference():
    net = Net(4, 23)
    net.output(net("Attention", *operands(net, flat=False), softmax_precision=11))
    assert_as_defined(net, is_fast=False)


def test_a_query_that_is_no_number_stays_so():
    net = Net(5, 23)
    inputs = operands(net, flat=False)
    net.feeds[inputs[0]][0, 0, 0, 0] = math.nan
    net.output(net("Attention", *inputs))
    case = net.case()
    (found,) = run(read_bytes(case.model), (), case.feeds).values()
    assert np.isnan(found[0, 0, 0]).all()
    assert np.isfinite(np.delete(found, 0, 2)).all()
