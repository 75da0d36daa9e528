"""Filters with a scale for each channel."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.nnapi import reference
from tests.driver.nnapi.network import F32, I8, I32, U8, kind_of, of_one
from tests.driver.nnapi.tensors import ACTIVATIONS, LENGTHS, SEEDS, output_of, tensor
from tests.driver.nnapi.windows import geometries
from tests.processor import HAS_VNNI
from tightship.driver import ModelBuilder, channels_type
from tightship.driver.nnapi import graph_of
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

STEPS = st.sampled_from((U8, I8))
MOST = 127 if HAS_VNNI else 63  # without VNNI, larger sums of two products saturate


def filter_of(rng, shape, axis):
    """Elements, what they stand for, and their type."""
    array = rng.integers(-MOST, MOST + 1, shape)
    kind = channels_type(shape, rng.uniform(0.001, 0.02, shape[axis]), axis)
    scales = np.frombuffer(kind.extra_params, np.float32)[1:].astype(float)
    along = [-1 if each == axis else 1 for each in range(len(shape))]
    return array, array * scales.reshape(along), scales, kind


def made(name, seed, operand_type, geometry, shapes, middle, activation):
    """Return an operation's result, the expected result, and its type."""
    rng, axis = np.random.default_rng(seed), 0 if name == "CONV_2D" else 3
    image, kind = tensor(rng, operand_type, (2, *geometry.image, shapes[0]))
    array, weights, scales, other = filter_of(rng, shapes[1], axis)
    steps = rng.integers(-999, 999, len(scales))
    each = reference.convolution if name == "CONV_2D" else reference.depthwise
    bias = steps * scales * kind.scale
    wanted = each(reference.real(image, kind), weights, bias, *geometry.terms)
    wanted = reference.activated(wanted, activation)
    if geometry.is_channels_first:
        image, wanted = image.transpose(0, 3, 1, 2), wanted.transpose(0, 3, 1, 2)
    output = output_of(operand_type, wanted.shape, 0.5)
    arguments = [
        (image, kind_of(operand_type, image.shape, kind.scale, kind.zero_point)),
        (array, other),
        (steps, kind_of(I32, steps.shape)),
        *geometry.arguments(middle, activation),
    ]
    return of_one(name, arguments, output, (1, 2)).run(), wanted, output


@given(geometries(), STEPS, SEEDS, LENGTHS, LENGTHS, ACTIVATIONS)
def test_a_convolution_takes_a_scale_for_each_output(
    geometry, operand_type, seed, depth, count, activation
):
    shapes = depth, (count, *geometry.kernel, depth)
    reference.assert_close(*made("CONV_2D", seed, operand_type, geometry, shapes, (), activation))


@given(geometries(), STEPS, SEEDS, LENGTHS, st.integers(1, 3), ACTIVATIONS)
def test_a_depthwise_convolution_does_too(
    geometry, operand_type, seed, depth, multiplier, activation
):
    shapes = depth, (1, *geometry.kernel, depth * multiplier)
    name, middle = "DEPTHWISE_CONV_2D", (multiplier,)
    reference.assert_close(*made(name, seed, operand_type, geometry, shapes, middle, activation))


@given(SEEDS, st.integers(0, 2))
def test_a_filter_becomes_floats(seed, axis):
    array, wanted, _, kind = filter_of(np.random.default_rng(seed), (2, 3, 20), axis)
    result = of_one("DEQUANTIZE", [(array, kind)], kind_of(F32, (2, 3, 20))).run()
    np.testing.assert_allclose(result, wanted, 1e-6)


def small(change):
    """A convolution of which something is changed."""
    rng = np.random.default_rng(0)
    _, _, _, kind = filter_of(rng, (3, 1, 1, 2), 0)
    parts = {"filter": kind, "bias": kind_of(I32, (3,)), "image": kind_of(U8, (1, 4, 4, 2), 0.5)}
    parts |= change
    shapes = {name: np.zeros(each.dimensions) for name, each in parts.items()}
    arguments = [(shapes[name], parts[name]) for name in ("image", "filter", "bias")]
    return of_one("CONV_2D", [*arguments, 2, 1, 1, 0], output_of(U8, (1, 4, 4, 3)), (1, 2))


BROKEN = {
    "axis": ({"filter": channels_type((3, 1, 1, 2), (1, 1), 3)}, "along axis 3"),
    "bias": ({"bias": kind_of(I32, (3,), 0.5)}, "has scale 0.5"),
    "image": ({"image": kind_of(F32, (1, 4, 4, 2))}, "and operand 0"),
    "scales": ({"filter": channels_type((3, 1, 1, 2), (1, 1), 0)}, "2 scales along axis 0"),
    "no axis": (
        {"filter": replace(channels_type((3, 1, 1, 2, 1), (1, 1), 4), dimensions=(3, 1, 1, 2))},
        "along axis 4",
    ),
    "zero": ({"filter": channels_type((3, 1, 1, 2), (1, 0, 1), 0)}, "not above 0"),
    "nothing": ({"filter": ValueType(11, (3, 1, 1, 2))}, "0 bytes of extra"),
    "others": ({"bias": replace(kind_of(I32, (3,)), extra_params=b"1234")}, "does not take"),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_scales_that_break_a_rule_are_refused(change, message):
    graph_of(small({}).model())
    with pytest.raises(DriverError, match=message) as caught:
        graph_of(small(change).model())
    assert caught.value.status == ErrorStatus.INVALID_ARGUMENT


def test_a_client_builds_such_a_filter(client):
    rng, builder = np.random.default_rng(1), ModelBuilder()
    array, weights, _, kind = filter_of(rng, (3, 1, 1, 2), 0)
    image, image_kind = tensor(rng, U8, (1, 2, 2, 2))
    output = output_of(U8, (1, 2, 2, 3), 0.1)
    names = [builder.input(image_kind), builder.constant(array.tolist(), kind)]
    names += [builder.constant(np.zeros(3, np.int32))]
    names += [builder.constant(value) for value in (2, 1, 1, 0)]
    builder.operation(OperationType.CONV_2D, names, [builder.output(output)])
    with client.prepare(builder) as model:
        (result,) = model.execute([image])
    wanted = reference.real(image, image_kind) @ weights.reshape(3, 2).T
    reference.assert_close(result, wanted, output)
