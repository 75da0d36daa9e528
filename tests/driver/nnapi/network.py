"""NNAPI models built operand by operand, and run by the engine."""

import numpy as np

from tightship.driver.nnapi import graph_of
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.service.model_checks import check_model
from tightship.driver.types.model import (
    NOWHERE,
    DataLocation,
    Lifetime,
    Model,
    Operand,
    Operation,
    Subgraph,
)
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.model import Model as Loaded

F32, F16 = OperandType.TENSOR_FLOAT32, OperandType.TENSOR_FLOAT16
U8, I8 = OperandType.TENSOR_QUANT8_ASYMM, OperandType.TENSOR_QUANT8_ASYMM_SIGNED
I32 = OperandType.TENSOR_INT32
BOOL, SYMM = OperandType.TENSOR_BOOL8, OperandType.TENSOR_QUANT8_SYMM
ARRAYS = {F32: np.float32, F16: np.float16, U8: np.uint8, I8: np.int8, I32: np.int32}
ARRAYS |= {BOOL: np.bool_, SYMM: np.int8, OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL: np.int8}
RANGES = {U8: (0, 255), I8: (-128, 127)}


def kind_of(operand_type, shape=(), scale=0.0, zero_point=0):
    return ValueType(operand_type, tuple(shape), scale, zero_point)


class Network:
    """Operands and operations, added one by one; each call returns an operand's index."""

    def __init__(self):
        self.operands, self.operations, self.feeds = [], [], []
        self.values = b""

    def operand(self, kind, lifetime, location=NOWHERE):
        self.operands.append(Operand(kind, lifetime, location))
        return len(self.operands) - 1

    def input(self, array, kind):
        self.feeds.append(np.asarray(array, ARRAYS[kind.operand_type]))
        return self.operand(kind, Lifetime.SUBGRAPH_INPUT)

    def constant(self, array, kind):
        data = np.asarray(array, ARRAYS.get(kind.operand_type)).tobytes()
        location = DataLocation(0, len(self.values), len(data))
        self.values += data
        return self.operand(kind, Lifetime.CONSTANT_COPY, location)

    def scalar(self, value):
        """An INT32, FLOAT32, FLOAT16 or BOOL, as Python's or NumPy's type of it says."""
        kinds = {bool: ("?", 6), int: ("<i4", 1), float: ("<f4", 0), np.float16: ("<f2", 10)}
        letter, operand_type = kinds[type(value)]
        return self.constant(np.array(value, letter), ValueType(operand_type))

    def given(self, value):
        """A scalar as `scalar` makes one that is an input of the model."""
        index = self.scalar(value)
        kind, location = self.operands[index].value_type, self.operands[index].location
        data = self.values[location.offset_bytes :][: location.length_bytes]
        letter = {0: "<f4", 1: "<i4", 6: "?", 10: "<f2"}[kind.operand_type]
        self.feeds.append(np.frombuffer(data, letter).reshape(()))
        self.operands[index] = Operand(kind, Lifetime.SUBGRAPH_INPUT, NOWHERE)
        return index

    def scalars(self, *values):
        return [self.scalar(value) for value in values]

    def temporary(self, kind):
        return self.operand(kind, Lifetime.TEMPORARY_VARIABLE)

    def output(self, kind):
        return self.operand(kind, Lifetime.SUBGRAPH_OUTPUT)

    def add(self, name, inputs, output):
        number = OperationType[name] if isinstance(name, str) else name
        self.operations.append(Operation(number, tuple(inputs), (output,)))
        return output

    def model(self, *pools):
        """The model, checked; `pools` are identifiers, which the check must be spared."""
        ends = [
            tuple(index for index, each in enumerate(self.operands) if each.lifetime == lifetime)
            for lifetime in (Lifetime.SUBGRAPH_INPUT, Lifetime.SUBGRAPH_OUTPUT)
        ]
        model = Model(
            Subgraph(tuple(self.operands), tuple(self.operations), *ends),
            operand_values=self.values,
            pools=pools,
        )
        if not pools:
            check_model(model, {})
        return model

    def run(self):
        """The only output."""
        (result,) = run(graph_of(self.model()), self.feeds)
        return result


def run(graph, feeds):
    with Loaded(prepare(graph, "nnapi", Settings()), Bounds()) as model:
        results = model.run(dict(zip(graph.inputs, feeds, strict=True)))
        return [np.array(results[name]) for name in graph.outputs]


def of_one(name, arguments, output, constants=()):
    """A network of one operation: (array, kind) are tensors, all else scalars.

    `constants` are the positions of tensors that are no inputs.
    """
    network = Network()
    indexes = []
    for position, each in enumerate(arguments):
        if not isinstance(each, tuple):
            indexes.append(network.scalar(each))
        elif position in constants:
            indexes.append(network.constant(*each))
        else:
            indexes.append(network.input(*each))
    network.add(name, indexes, network.output(output))
    return network
