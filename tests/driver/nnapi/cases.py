"""A network of each operation on random tensors, with what it should give."""

import numpy as np

from tests.driver.nnapi import reference
from tests.driver.nnapi.network import ARRAYS, F16, I8, I32, RANGES, Network, kind_of
from tests.driver.nnapi.tensors import bias_of, output_of, tensor
from tightship.driver import ModelBuilder
from tightship.driver.types.model import Lifetime

IMAGE = (1, 6, 5, 4)


def built(network):
    """A network as a client builds it."""
    builder = ModelBuilder()
    for operand in network.operands:
        match operand.lifetime:
            case Lifetime.CONSTANT_COPY:
                location = operand.location
                data = network.values[location.offset_bytes :][: location.length_bytes]
                letter = ARRAYS.get(operand.value_type.operand_type)
                scalars = {0: "<f4", 1: "<i4", 6: "?", 10: "<f2"}
                array = np.frombuffer(data, letter or scalars[operand.value_type.operand_type])
                array = array.reshape(operand.value_type.dimensions)
                builder.constant(array, operand.value_type)
            case Lifetime.SUBGRAPH_INPUT:
                builder.input(operand.value_type)
            case Lifetime.SUBGRAPH_OUTPUT:
                builder.output(operand.value_type)
            case _:
                builder.temporary(operand.value_type)
    for operation in network.operations:
        builder.operation(operation.operation_type, operation.inputs, operation.outputs)
    return builder


class Case:
    """A network of one operation on random tensors, with what it should give."""

    def __init__(self, operand_type):
        self.rng = np.random.default_rng(int(operand_type))
        self.type = operand_type
        self.network = Network()

    def input(self, shape, scale=0.02):
        array, kind = tensor(self.rng, self.type, shape, scale)
        return self.network.input(array, kind), reference.real(array, kind), kind

    def weights(self, shape, scale=0.01):
        array, kind = tensor(self.rng, self.type, shape, scale)
        return self.network.constant(array, kind), reference.real(array, kind), kind

    def bias(self, count, scale):
        array, kind = bias_of(self.rng, self.type, count, scale)
        return self.network.constant(array, kind), reference.real(array, kind)

    def done(self, name, inputs, wanted, kind=None):
        kind = kind or output_of(self.type, wanted.shape)
        self.network.add(name, inputs, self.network.output(kind))
        return self.network, wanted, kind


def elementwise(name):
    def make(case):
        left, a, _ = case.input((2, 3))
        right, b, _ = case.input((3,))
        wanted = {"ADD": a + b, "MUL": a * b, "SUB": a - b}
        return case.done(name, [left, right, case.network.scalar(1)], np.maximum(wanted[name], 0))

    return make


def convolution(case):
    x, image, kind = case.input(IMAGE)
    w, weights, other = case.weights((3, 3, 2, 4))
    b, bias = case.bias(3, kind.scale * other.scale)
    geometry = (3, 2), (1, 1), (1, 1), ((1, 1), (0, 1))
    wanted = reference.convolution(image, weights, bias, *geometry)
    return case.done("CONV_2D", [x, w, b, *case.network.scalars(1, 1, 1, 0)], wanted)


def depthwise(case):
    x, image, kind = case.input(IMAGE)
    w, weights, other = case.weights((1, 3, 2, 8))
    b, bias = case.bias(8, kind.scale * other.scale)
    wanted = reference.depthwise(image, weights, bias, (3, 2), (1, 1), (1, 1), ((0, 0), (0, 0)))
    names = [x, w, b, *case.network.scalars(2, 1, 1, 2, 3)]
    return case.done("DEPTHWISE_CONV_2D", names, np.clip(wanted, 0, 6))


def layer(case):
    x, value, kind = case.input((2, 40))
    w, weights, other = case.weights((6, 40))  # more than is copied into the message
    b, bias = case.bias(6, kind.scale * other.scale)
    names = [x, w, b, case.network.scalar(0)]
    return case.done("FULLY_CONNECTED", names, value @ weights.T + bias)


def pool(name, each):
    def make(case):
        x, image, kind = case.input(IMAGE)
        wanted = each(image, (2, 3), (2, 1), (1, 1), ((0, 0), (0, 0)))
        names = [x, *case.network.scalars(2, 1, 2, 3, 2, 0)]
        kind = kind_of(case.type, wanted.shape, kind.scale, kind.zero_point)
        return case.done(name, names, wanted, kind)

    return make


def curve(name, each, scale=0.0, zero_point=0):
    def make(case):
        x, value, kind = case.input((3, 5))
        is_signed = 128 * (case.type == I8)
        found = (kind.scale, kind.zero_point) if not scale else (scale, zero_point - is_signed)
        if case.type not in RANGES:
            found = 0.0, 0
        names = [x] if name != "SOFTMAX" else [x, beta(case)]
        return case.done(name, names, each(value), kind_of(case.type, (3, 5), *found))

    return make


def beta(case):
    return case.network.scalar(np.float16(1) if case.type == F16 else 1.0)


def reshape(case):
    x, value, kind = case.input((2, 6))
    lengths = case.network.constant([3, -1], kind_of(I32, (2,)))
    kind = kind_of(case.type, (3, 4), kind.scale, kind.zero_point)
    return case.done("RESHAPE", [x, lengths], value.reshape(3, 4), kind)


def concatenation(case):
    x, one, _ = case.input((2, 3))
    y, other, _ = case.input((2, 1))
    names = [x, y, case.network.scalar(1)]
    return case.done("CONCATENATION", names, np.concatenate([one, other], 1))


CASES = {
    "ADD": elementwise("ADD"),
    "MUL": elementwise("MUL"),
    "SUB": elementwise("SUB"),
    "CONV_2D": convolution,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": layer,
    "MAX_POOL_2D": pool("MAX_POOL_2D", reference.max_pool),
    "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D", reference.average_pool),
    "RELU": curve("RELU", lambda x: reference.activated(x, 1)),
    "LOGISTIC": curve("LOGISTIC", lambda x: 1 / (1 + np.exp(-x)), 1 / 256),
    "TANH": curve("TANH", np.tanh, 1 / 128, 128),
    "SOFTMAX": curve("SOFTMAX", lambda x: reference.softmax(x, 1, -1), 1 / 256),
    "RESHAPE": reshape,
    "CONCATENATION": concatenation,
}
