"""Sums, products, activations and curves against their definitions."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tests.driver.nnapi import reference
from tests.driver.nnapi.network import ARRAYS, BOOL, F16, F32, I8, I32, SYMM, U8, kind_of, of_one
from tests.driver.nnapi.tensors import ACTIVATIONS, SEEDS, TYPES, output_of, tensor
from tightship.driver.nnapi import graph_of
from tightship.errors import DriverError

BINARY = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide}
CURVES = {"LOGISTIC": lambda x: 1 / (1 + np.exp(-x)), "TANH": np.tanh}
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
PAIRS = mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=4, max_side=4)


@pytest.mark.parametrize("name", BINARY)
@given(PAIRS, TYPES, SEEDS, ACTIVATIONS)
def test_two_tensors_are_broadcast_and_activated(name, shapes, operand_type, seed, activation):
    assume(name != "DIV" or operand_type in {F32, F16})
    rng = np.random.default_rng(seed)
    left, right = (tensor(rng, operand_type, shape) for shape in shapes.input_shapes)
    if name == "DIV":
        right = np.abs(right[0]) + np.ones(1, right[0].dtype), right[1]
    wanted = BINARY[name](reference.real(*left), reference.real(*right))
    output = output_of(operand_type, wanted.shape)
    result = of_one(name, [left, right, activation], output).run()
    reference.assert_close(result, reference.activated(wanted, activation), output)


@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
@given(PAIRS, SEEDS)
def test_integers_are_exact(name, shapes, seed):
    rng = np.random.default_rng(seed)
    left, right = (rng.integers(-(2**15), 2**15, s).astype("i4") for s in shapes.input_shapes)
    wanted = BINARY[name](left, right)
    arguments = [(each, kind_of(I32, each.shape)) for each in (left, right)]
    result = of_one(name, [*arguments, 0], kind_of(I32, wanted.shape)).run()
    assert np.array_equal(result, wanted)


WORDS = st.integers(-(2**31), 2**31 - 1)


@given(st.lists(st.tuples(WORDS, WORDS.filter(bool) | st.integers(-3, -1)), min_size=1, max_size=9))
def test_integers_are_divided_downwards(pairs):
    """Division rounds as `//` of Python does; 2**31, which exceeds INT32, becomes the largest."""
    left, right = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    wanted = np.minimum(left // right, 2**31 - 1)
    kind = kind_of(I32, left.shape)
    result = of_one("DIV", [(left, kind), (right, kind), 0], kind).run()
    assert np.array_equal(result, wanted)


def test_a_division_by_zero_harms_no_other():
    kind = kind_of(I32, (3,))
    result = of_one("DIV", [([7, 7, -7], kind), ([2, 0, 2], kind), 0], kind).run()
    assert result[[0, 2]].tolist() == [3, -4]


COMPARISONS = {
    "EQUAL": np.equal,
    "NOT_EQUAL": np.not_equal,
    "LESS": np.less,
    "LESS_EQUAL": np.less_equal,
    "GREATER": np.greater,
    "GREATER_EQUAL": np.greater_equal,
}


@pytest.mark.parametrize("name", COMPARISONS)
@given(PAIRS, st.sampled_from((F32, F16, U8, I8, I32, BOOL)), SEEDS)
def test_a_comparison_is_of_what_elements_stand_for(name, shapes, operand_type, seed):
    rng = np.random.default_rng(seed)
    if operand_type in {I32, BOOL}:
        tensors = [
            (rng.integers(0, 2, shape).astype(ARRAYS[operand_type]), kind_of(operand_type, shape))
            for shape in shapes.input_shapes
        ]
    else:
        tensors = [tensor(rng, operand_type, shape, 0.5) for shape in shapes.input_shapes]
    wanted = COMPARISONS[name](*(reference.real(*each) for each in tensors))
    result = of_one(name, tensors, kind_of(BOOL, wanted.shape)).run()
    assert np.array_equal(result, wanted)


@pytest.mark.parametrize("floats", [F32, F16])
def test_symmetric_steps_become_floats(floats):
    array = np.random.default_rng(0).integers(-127, 128, (2, 9))
    kind = kind_of(SYMM, (2, 9), 0.25)
    result = of_one("DEQUANTIZE", [(array, kind)], kind_of(floats, (2, 9))).run()
    assert np.array_equal(result, array / 4)


@pytest.mark.parametrize(("name", "activation"), [("RELU", 1), ("RELU1", 2), ("RELU6", 3)])
@given(SHAPES, TYPES, SEEDS)
def test_an_activation_clips(name, activation, shape, operand_type, seed):
    array, kind = tensor(np.random.default_rng(seed), operand_type, shape, scale=0.1)
    wanted = reference.activated(reference.real(array, kind), activation)
    reference.assert_close(of_one(name, [(array, kind)], kind).run(), wanted, kind)


def curve_output(name, operand_type, shape):
    scale, zero_point = (1 / 128, 128) if name == "TANH" else (1 / 256, 0)
    if operand_type == U8:
        return kind_of(U8, shape, scale, zero_point)
    return (
        kind_of(I8, shape, scale, zero_point - 128)
        if operand_type == I8
        else kind_of(operand_type, shape)
    )


@pytest.mark.parametrize("name", CURVES)
@given(SHAPES, TYPES, SEEDS)
def test_a_curve_is_applied_to_each_element(name, shape, operand_type, seed):
    array, kind = tensor(np.random.default_rng(seed), operand_type, shape)
    output = curve_output(name, operand_type, shape)
    wanted = CURVES[name](reference.real(array, kind))
    reference.assert_close(of_one(name, [(array, kind)], output).run(), wanted, output)


@given(SHAPES, TYPES, SEEDS, st.sampled_from((1.0, 0.5, 2.0)), st.none() | st.integers(-4, 3))
def test_softmax_is_of_beta_times_the_input(shape, operand_type, seed, beta, axis):
    assume(axis is None or -len(shape) <= axis < len(shape))
    array, kind = tensor(np.random.default_rng(seed), operand_type, shape)
    output = curve_output("SOFTMAX", operand_type, shape)
    wanted = reference.softmax(reference.real(array, kind), beta, -1 if axis is None else axis)
    factor = np.float16(beta) if operand_type == F16 else beta
    arguments = [(array, kind), factor, *([] if axis is None else [axis])]
    reference.assert_close(of_one("SOFTMAX", arguments, output).run(), wanted, output)


@pytest.mark.parametrize("floats", [F32, F16])
@pytest.mark.parametrize("operand_type", [U8, I8])
def test_numbers_go_between_floats_and_steps(floats, operand_type):
    rng = np.random.default_rng(0)
    array, kind = tensor(rng, operand_type, (2, 9))
    made = of_one("DEQUANTIZE", [(array, kind)], kind_of(floats, (2, 9))).run()
    reference.assert_close(made, reference.real(array, kind), kind_of(floats))
    values, plain = tensor(rng, floats, (2, 9))
    made = of_one("QUANTIZE", [(values, plain)], kind).run()
    reference.assert_close(made, values.astype(np.float64), kind)


ONE = np.ones(2)
REFUSED = {
    "MUL": ([(ONE, kind_of(U8, (2,), 0.5))] * 2 + [0], kind_of(U8, (2,), 0.25), "more than the"),
    "ADD": ([(ONE, kind_of(F32, (2,))), (np.ones(3), kind_of(F32, (3,))), 0], F32, "broadcast"),
    "SUB": ([(ONE, kind_of(F32, (2,))), (ONE, kind_of(F16, (2,))), 0], F32, "types must agree"),
    "DIV": ([(ONE, kind_of(U8, (2,), 0.5))] * 2 + [0], U8, "QUANT8_ASYMM"),
    "RELU": ([(ONE, kind_of(U8, (2,), 0.5))], kind_of(U8, (2,), 0.25), "has scale 0.25"),
    "TANH": ([(ONE, kind_of(U8, (2,), 0.5))], kind_of(U8, (2,), 0.5), "requires 0.0078125 and 128"),
    "SOFTMAX": ([(ONE, kind_of(F32, (2,))), 0.0], F32, "must be above 0"),
    "LOGISTIC": ([(ONE, kind_of(F32, (2,)))], F16, "requires TENSOR_FLOAT32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_breaks_a_rule_is_refused(name):
    arguments, output, message = REFUSED[name]
    kind = output_of(output, (2,)) if isinstance(output, int) else output
    with pytest.raises(DriverError, match=message):
        graph_of(of_one(name, arguments, kind).model())
