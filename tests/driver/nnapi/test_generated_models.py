"""Suites of table 2.3 over every operation and type, in each way to execute, in another process.

MemoryDomainTest, FencedComputeTest and DynamicOutputShapeTest by their names.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.driver.nnapi import reference
from tests.driver.nnapi.cases import CASES, Case, built
from tests.driver.nnapi.test_native_operands import TYPES
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import BurstOpened, Executed, ExecutionCreated
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.model import DataLocation, Lifetime
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

IA, SHORT = ErrorStatus.INVALID_ARGUMENT, ErrorStatus.OUTPUT_INSUFFICIENT_SIZE


@pytest.fixture(params=TYPES.values(), ids=TYPES.keys())
def operand_type(request):
    return request.param


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request, operand_type):
    """A network, what it gives, and its type."""
    return request.param(Case(operand_type))


def run_burst(model, inputs, outputs):
    with model.burst() as burst:
        burst.execute(inputs, outputs)


def run_fenced(model, inputs, outputs):
    """The second run waits for the first, which writes the same; only both leave it right."""
    with model.execute_fenced(inputs, outputs) as first:
        with model.execute_fenced(inputs, outputs, wait_for=[first.fence]) as second:
            second.wait(60)
        assert first.info().status is ErrorStatus.NONE


def run_reusable(model, inputs, outputs):
    with model.reusable(inputs, outputs) as reusable:
        for _ in range(2):
            reusable.execute()


WAYS = {
    "sync": lambda model, inputs, outputs: model.execute(inputs, outputs),
    "burst": run_burst,
    "fenced": run_fenced,
    "reusable": run_reusable,
}


def test_memory_domain_and_fenced_compute(client, case):
    """MemoryDomainTest, FencedComputeTest: all inputs and outputs are buffers of the driver."""
    network, wanted, kind = case
    with client.prepare(built(network)) as model:
        inputs = [client.allocate(inputs=[(model, at)]) for at in range(len(network.feeds))]
        for buffer, array in zip(inputs, network.feeds, strict=True):
            buffer.copy_from(array)
        for run in WAYS.values():
            output = client.allocate(outputs=[(model, 0)])
            run(model, [each.of() for each in inputs], [output.of()])
            result = np.empty(wanted.shape, dtype_of(kind))
            output.copy_to(result)
            reference.assert_close(result, wanted, kind)
            output.close()
        for each in inputs:
            each.close()


def opened(network):
    """The network with nothing said of the dimensions of its output."""
    for index, operand in enumerate(network.operands):
        if operand.lifetime == Lifetime.SUBGRAPH_OUTPUT:
            kind = replace(operand.value_type, dimensions=())
            network.operands[index] = replace(operand, value_type=kind)
    return network


class Asked:
    """A request whose inputs lie in a segment, and whose output has so many bytes there."""

    def __init__(self, client, model, feeds, size_bytes):
        self.client, self.model = client, model
        self.segment = client.segment(sum(array.nbytes + 64 for array in feeds) + size_bytes + 64)
        inputs = []
        for array in feeds:
            placed = self.segment.place(array.shape, array.dtype)
            placed.array[...] = array
            inputs.append(RequestArgument(placed.location))
        self.output = self.segment.place((size_bytes,), np.uint8)
        output = RequestArgument(DataLocation(0, self.output.location.offset_bytes, size_bytes))
        self.request = Request(tuple(inputs), (output,), (RequestPool(self.segment.pool),))

    def reply(self, way):
        """Return the reply; the status alone if the call is refused."""
        session, number = self.client._session, self.model.identifier
        match way:
            case "sync":
                call = m.Execute(number, self.request)
            case "burst":
                burst = session.expect(BurstOpened, m.OpenBurst(number)).burst
                call = m.BurstExecute(burst, self.request, (-1,))
            case "reusable":
                made = session.expect(ExecutionCreated, m.CreateExecution(number, self.request))
                call = m.RunExecution(made.execution)
            case _:
                with pytest.raises(DriverError) as caught:
                    session.exchange(m.ExecuteFenced(number, self.request))
                return caught.value.status
        return session.expect(Executed, call)


def test_dynamic_output_shape_unspecified(client, case):
    network, wanted, kind = case
    element = dtype_of(kind)
    with client.prepare(built(opened(network))) as model:
        asked = Asked(client, model, network.feeds, wanted.size * element.itemsize)
        for way in ("sync", "burst", "reusable"):
            asked.output.array[...] = 0
            reply = asked.reply(way)
            assert reply.status is ErrorStatus.NONE
            (shape,) = reply.shapes
            assert (shape.dimensions, shape.is_sufficient) == (wanted.shape, True)
            result = asked.output.array.view(element).reshape(wanted.shape)
            reference.assert_close(result, wanted, kind)
        assert asked.reply("fenced") == IA


def test_dynamic_output_shape_insufficient(client, case):
    network, wanted, kind = case
    element = dtype_of(kind)
    with client.prepare(built(opened(network))) as model:
        asked = Asked(client, model, network.feeds, (wanted.size - 1) * element.itemsize)
        for way in ("sync", "burst", "reusable"):
            reply = asked.reply(way)
            assert reply.status is SHORT
            (shape,) = reply.shapes
            assert (shape.dimensions, shape.is_sufficient) == (wanted.shape, False)
        assert asked.reply("fenced") == IA
