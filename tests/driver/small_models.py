"""Models and requests of the tables: convolutions with one input each, and an addition."""

from dataclasses import replace

from tests.driver.fake_server import FakeServer
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Done, Failed
from tightship.driver.types.model import (
    DataLocation,
    Lifetime,
    Model,
    Operand,
    Operation,
    Subgraph,
)
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus

NONE = ErrorStatus.NONE
IA = ErrorStatus.INVALID_ARGUMENT
GF = ErrorStatus.GENERAL_FAILURE

SHAPE = (1, 32, 32, 8)
TYPES = {
    "float32": ValueType(OperandType.TENSOR_FLOAT32, SHAPE),
    "float16": ValueType(OperandType.TENSOR_FLOAT16, SHAPE),
    "quant8_asymm": ValueType(OperandType.TENSOR_QUANT8_ASYMM, SHAPE, 0.5),
    "quant8_asymm_signed": ValueType(OperandType.TENSOR_QUANT8_ASYMM_SIGNED, SHAPE, 0.5),
}
QUANTIZED = ("quant8_asymm", "quant8_asymm_signed")
CONV_2D, ADD = 3, 0


def conv(value_type, count=1):
    """`count` convolutions, each of an input of its own into an output of its own."""
    operands, operations = [], []
    for index in range(count):
        operands += [
            Operand(value_type, Lifetime.SUBGRAPH_INPUT),
            Operand(value_type, Lifetime.SUBGRAPH_OUTPUT),
        ]
        operations.append(Operation(CONV_2D, (2 * index,), (2 * index + 1,)))
    ends = tuple(range(0, 2 * count, 2)), tuple(range(1, 2 * count, 2))
    return Model(Subgraph(tuple(operands), tuple(operations), *ends))


def add(value_type):
    """The sum of two inputs; the activation is a third one, a scalar."""
    operands = (
        Operand(value_type, Lifetime.SUBGRAPH_INPUT),
        Operand(value_type, Lifetime.SUBGRAPH_INPUT),
        Operand(ValueType(OperandType.INT32), Lifetime.SUBGRAPH_INPUT),
        Operand(value_type, Lifetime.SUBGRAPH_OUTPUT),
    )
    return Model(Subgraph(operands, (Operation(ADD, (0, 1, 2), (3,)),), (0, 1, 2), (3,)))


def shaped(value_type, *dimensions):
    return replace(value_type, dimensions=dimensions)


def status_of(reply):
    if reply is None or isinstance(reply, Done):
        return NONE
    return getattr(reply, "status", NONE)


class Client:
    """A connection, with the calls that the tables make."""

    def __init__(self, server=None, user=0):
        self.server = server or FakeServer()
        self.number = self.server.connect(user)

    def __call__(self, message, *files):
        return self.server.call(self.number, message, *files)

    def status(self, message, *files):
        return status_of(self(message, *files))

    def model(self, model):
        return self(m.Prepare(model)).model

    def pool(self, size_bytes=1 << 20, protection=3, kind="ashmem", **fields):
        facts = fields.pop("facts", {})
        file = self.server.file(fields.pop("file_bytes", 1 << 20), **facts)
        return self(m.RegisterPool(kind, size_bytes, protection, 0, **fields), file).pool

    def allocate(self, models, inputs=(), outputs=(), dimensions=()):
        """Roles are indexes of arguments of the first model, or `Role`s."""
        rows = [
            tuple(each if isinstance(each, m.Role) else m.Role(0, each) for each in roles)
            for roles in (inputs, outputs)
        ]
        return self(m.Allocate(dimensions, tuple(models), *rows))

    def buffer(self, models, inputs=(), outputs=(), dimensions=()):
        return self.allocate(models, inputs, outputs, dimensions).token

    def initialise(self, token, size_bytes, dimensions=()):
        assert self.status(m.CopyFrom(token, self.pool(size_bytes), dimensions)) is NONE


def whole(index):
    """An argument that is all of a buffer."""
    return RequestArgument(DataLocation(index))


class Places:
    """Arguments packed one after another into a pool, or in buffers."""

    def __init__(self, pool):
        self.pools = [RequestPool(pool)]
        self.offset_bytes = 0

    def pooled(self, size_bytes, *dimensions):
        location = DataLocation(0, self.offset_bytes, size_bytes)
        self.offset_bytes += -(-size_bytes // 64) * 64
        return RequestArgument(location, dimensions)

    def buffer(self, token, *dimensions):
        self.pools.append(RequestPool(token, is_token=True))
        return RequestArgument(DataLocation(len(self.pools) - 1), dimensions)

    def request(self, inputs, outputs):
        return Request(tuple(inputs), tuple(outputs), tuple(self.pools))


MODES = ("sync", "burst", "fenced", "reusable")


def run(client, model, request, mode="sync", **terms):
    """The status of a run, in any of the ways there are."""
    match mode:
        case "sync":
            return client.status(m.Execute(model, request, **terms))
        case "burst":
            burst = client(m.OpenBurst(model)).burst
            slots = (-1,) * len(request.pools)
            status = client.status(m.BurstExecute(burst, request, slots, **terms))
            assert client.status(m.CloseBurst(burst)) is NONE
            return status
        case "reusable":
            created = client(m.CreateExecution(model, request))
            if isinstance(created, Failed):
                return created.status
            status = client.status(m.RunExecution(created.execution, **terms))
            assert client.status(m.ReleaseExecution(created.execution)) is NONE
            return status
    launched = client(m.ExecuteFenced(model, request, **terms))
    if isinstance(launched, Failed):
        return launched.status
    info = client(m.GetExecutionInfo(launched.execution))
    assert client.server.fences[launched.execution] is (info.status is NONE)
    assert client.status(m.ReleaseExecution(launched.execution)) is NONE
    return info.status
