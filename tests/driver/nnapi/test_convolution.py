"""Convolutions and fully connected layers against their definitions."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.nnapi import reference
from tests.driver.nnapi.network import F32, I32, U8, Network, kind_of, of_one
from tests.driver.nnapi.tensors import (
    ACTIVATIONS,
    LENGTHS,
    SEEDS,
    TYPES,
    bias_of,
    output_of,
    tensor,
)
from tests.driver.nnapi.windows import Geometry, geometries
from tightship.driver.nnapi import graph_of
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

CHANNELS_FIRST = (0, 3, 1, 2)


def moved(tensor, order):
    array, kind = tensor
    shape = tuple(kind.dimensions[axis] for axis in order)
    return array.transpose(order), kind_of(kind.operand_type, shape, kind.scale, kind.zero_point)


def check(name, case, made, arguments):
    """Run an operation on NHWC tensors, given as the case says, against what it should make."""
    image, weights, bias = made
    scale = 0.5 if image[1].scale else 0.0
    shape = case.wanted.shape
    order = CHANNELS_FIRST if case.geometry.is_channels_first else (0, 1, 2, 3)
    output = output_of(case.operand_type, [shape[axis] for axis in order], scale)
    given_image = moved(image, order)
    network = of_one(name, [given_image, weights, bias, *arguments], output, case.constants)
    reference.assert_close(network.run(), case.wanted.transpose(order), output)


@dataclass(frozen=True)
class Case:
    """Expected result of a convolution of NHWC tensors, and the operands that are constants."""

    geometry: Geometry
    operand_type: int
    wanted: np.ndarray
    constants: tuple


def operands(seed, operand_type, shapes):
    """An image, weights and a bias; the shapes are those of all three."""
    rng = np.random.default_rng(seed)
    image, weights = (tensor(rng, operand_type, shape) for shape in shapes[:2])
    return image, weights, bias_of(rng, operand_type, *shapes[2], image[1].scale * weights[1].scale)


@given(geometries(), TYPES, SEEDS, LENGTHS, LENGTHS, ACTIVATIONS, st.booleans())
def test_a_convolution_is_the_sum_over_its_windows(
    geometry, operand_type, seed, depth, count, activation, is_constant
):
    shapes = ((2, *geometry.image, depth), (count, *geometry.kernel, depth), (count,))
    made = operands(seed, operand_type, shapes)
    wanted = reference.convolution(*(reference.real(*each) for each in made), *geometry.terms)
    wanted = reference.activated(wanted, activation)
    case = Case(geometry, operand_type, wanted, (1, 2) if is_constant else ())
    check("CONV_2D", case, made, geometry.arguments((), activation))


@given(geometries(), TYPES, SEEDS, LENGTHS, st.integers(1, 3), ACTIVATIONS)
def test_a_depthwise_convolution_makes_channels_of_each_channel(
    geometry, operand_type, seed, depth, multiplier, activation
):
    count = depth * multiplier
    shapes = ((2, *geometry.image, depth), (1, *geometry.kernel, count), (count,))
    made = operands(seed, operand_type, shapes)
    wanted = reference.depthwise(*(reference.real(*each) for each in made), *geometry.terms)
    wanted = reference.activated(wanted, activation)
    case = Case(geometry, operand_type, wanted, (1, 2))
    check("DEPTHWISE_CONV_2D", case, made, geometry.arguments((multiplier,), activation))


@given(TYPES, SEEDS, st.lists(LENGTHS, min_size=1, max_size=3), LENGTHS, LENGTHS, ACTIVATIONS)
def test_a_fully_connected_layer_takes_rows_of_what_its_weights_need(
    operand_type, seed, before, depth, units, activation
):
    rng = np.random.default_rng(seed)
    image, weights = (tensor(rng, operand_type, s) for s in ((*before, depth), (units, depth)))
    bias = bias_of(rng, operand_type, units, image[1].scale * weights[1].scale)
    rows = reference.real(*image).reshape(-1, depth)
    wanted = rows @ reference.real(*weights).T + reference.real(*bias)
    output = output_of(operand_type, wanted.shape)
    network = of_one("FULLY_CONNECTED", [image, weights, bias, activation], output, (1, 2))
    reference.assert_close(network.run(), reference.activated(wanted, activation), output)


def test_constant_weights_are_not_read_before_they_are_packed():
    rng = np.random.default_rng(0)
    arguments = [tensor(rng, F32, (1, 4, 4, 2)), tensor(rng, F32, (3, 2, 2, 2))]
    arguments += [tensor(rng, F32, (3,)), 2, 1, 1, 0]
    graph = graph_of(of_one("CONV_2D", arguments, kind_of(F32, (1, 3, 3, 3)), (1, 2)).model())
    (node,) = (node for node in graph.nodes if node.operator == "Conv")
    found = graph.constant(node.inputs[1])
    assert found.array().base is not None
    assert np.array_equal(found.array(), arguments[1][0].transpose(0, 3, 1, 2))


def test_two_convolutions_meet_without_a_transpose_between_them():
    rng = np.random.default_rng(0)
    kind = kind_of(U8, (1, 4, 4, 2), 0.5, 3)
    network = Network()
    value = network.input(rng.integers(0, 9, kind.dimensions), kind)
    for target in (network.temporary(kind), network.output(kind)):
        weights = network.constant(np.ones((2, 1, 1, 2)), kind_of(U8, (2, 1, 1, 2), 0.5, 0))
        bias = network.constant(np.zeros(2), kind_of(I32, (2,), 0.25))
        inputs = [value, weights, bias, *network.scalars(2, 1, 1, 0)]
        value = network.add("CONV_2D", inputs, target)
    operators = [node.operator for node in graph_of(network.model()).nodes]
    assert operators.count("Transpose") == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({3: 3}, "padding scheme is 3"),
        ({3: 0}, "padding scheme is 0"),
        ({4: 0}, "at least 1"),
        ({6: 4}, "operand 6 .input 6. is activation 4; they are 0 to 3"),
    ],
)
def test_an_argument_that_breaks_a_rule_is_named(change, message):
    rng = np.random.default_rng(0)
    arguments = [tensor(rng, F32, (1, 4, 4, 2)), tensor(rng, F32, (3, 2, 2, 2))]
    arguments += [tensor(rng, F32, (3,)), 2, 1, 1, 0]
    for position, value in change.items():
        arguments[position] = value
    network = of_one("CONV_2D", arguments, kind_of(F32, (1, 3, 3, 3)), (1, 2))
    with pytest.raises(DriverError, match=r"Operation 0 \(CONV_2D\).*" + message) as caught:
        graph_of(network.model())
    assert caught.value.status == ErrorStatus.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("depth", "bias", "output", "message"),
    [
        (2, kind_of(I32, (3,), 0.5), U8, r"operand 2 \(input 2\) has scale 0.5; NNAPI requires"),
        (2, kind_of(I32, (2,), 0.25), U8, r"operand 2 \(input 2\) has dimensions \[2\]"),
        (2, kind_of(F32, (3,)), U8, r"operand 2 \(input 2\) is a TENSOR_FLOAT32"),
        (1, kind_of(I32, (3,), 0.25), U8, r"operand 1 \(input 1\) has a depth of 1"),
        (2, kind_of(I32, (3,), 0.25), F32, r"\(output 0\) is a TENSOR_FLOAT32"),
    ],
)
def test_operands_that_do_not_fit_each_other_are_refused(depth, bias, output, message):
    image = np.zeros((1, 4, 4, 2)), kind_of(U8, (1, 4, 4, 2), 0.5)
    weights = np.zeros((3, 2, 2, depth)), kind_of(U8, (3, 2, 2, depth), 0.5)
    arguments = [image, weights, (np.zeros(bias.dimensions), bias), 2, 1, 1, 0]
    network = of_one("CONV_2D", arguments, output_of(output, (1, 3, 3, 3)), (1, 2))
    with pytest.raises(DriverError, match=message):
        graph_of(network.model())
