"""Rules of dimensions that only a request says (R36, R37, R41, R42, R63, R65, R88), run for real.

The same rules are checked without an engine in `test_request_table.py` (Q9, Q10), and those of
buffers in `test_buffer_execution_table.py` (E7, E8).
"""

import numpy as np
import pytest

from tests.driver.nnapi.test_open_operands import ROWS, open_loop, sum_of_rows
from tightship.driver import ModelBuilder, tensor_type
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Executed, OutputShape
from tightship.driver.types.model import DataLocation
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

IA, GF = ErrorStatus.INVALID_ARGUMENT, ErrorStatus.GENERAL_FAILURE
TWO_ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


class Places:
    """Two rows for a model of two outputs, x and -x, and room for them, in a segment."""

    def __init__(self, client):
        builder = ModelBuilder()
        x = builder.input(ROWS)
        for sign in (1.0, -1.0):
            names = [x, builder.constant([sign], tensor_type("f4", (1,))), builder.constant(0)]
            builder.operation(OperationType.MUL, names, [builder.output(ROWS)])
        self.client, self.model = client, client.prepare(builder)
        self.segment = client.segment(1 << 12)
        self.x = self.segment.place((2, 3), "f4")
        self.x.array[...] = TWO_ROWS
        self.outputs = [self.segment.place((16,), "f4") for _ in range(2)]

    def run(self, sizes, dimensions=((), ()), given=(2, 3), call=m.Execute):
        """The answer for outputs of these lengths, in bytes, and dimensions."""
        x = RequestArgument(DataLocation(0, 0, self.x.array.nbytes), given)
        outputs = tuple(
            RequestArgument(DataLocation(0, place.location.offset_bytes, size), row)
            for place, size, row in zip(self.outputs, sizes, dimensions, strict=True)
        )
        request = Request((x,), outputs, (RequestPool(self.segment.pool),))
        reply, files = self.client._session.exchange(call(self.model.identifier, request))
        assert not files
        return reply

    def status(self, *args, **named):
        with pytest.raises(DriverError) as caught:
            self.run(*args, **named)
        return caught.value.status

    def results(self):
        return [place.array[:6].reshape(2, 3) for place in self.outputs]


@pytest.fixture
def places(client):
    return Places(client)


@pytest.mark.parametrize("room", [24, 28, 64])
def test_outputs_of_unknown_dimensions_come_back_with_theirs(places, room):
    for dimensions in [((), ()), ((0, 3), (0, 0)), ((2, 3), ())]:
        sizes = [24 if row == (2, 3) else room for row in dimensions]
        reply = places.run(sizes, dimensions)
        assert reply == Executed(ErrorStatus.NONE, (OutputShape((2, 3)),) * 2)
        np.testing.assert_array_equal(places.results(), [TWO_ROWS, -TWO_ROWS])
        assert all((place.array[6:] == 0).all() for place in places.outputs)


def test_an_output_without_room_is_reported_and_nothing_is_written(places):
    reply = places.run([20, 24])
    assert reply.status == ErrorStatus.OUTPUT_INSUFFICIENT_SIZE
    assert reply.shapes == (OutputShape((2, 3), is_sufficient=False), OutputShape((2, 3)))
    assert not any(place.array.any() for place in places.outputs)


def test_inputs_need_every_axis(places):
    for given in [(), (0, 3), (0, 0), (2, 4), (2, 3, 1)]:
        assert places.status([24, 24], given=given) == IA
    assert places.run([24, 24], given=(2, 0)).status is ErrorStatus.NONE


def test_an_output_is_not_given_dimensions_that_the_inputs_do_not_make(places):
    assert places.status([12, 24], ((1, 3), ())) == IA
    assert places.status([24, 24], ((0, 4), ())) == IA


def test_a_fenced_execution_wants_to_know_dimensions_of_outputs(places):
    assert places.status([24, 24], call=m.ExecuteFenced) == IA
    assert places.status([24, 24], ((2, 3), (0, 3)), call=m.ExecuteFenced) == IA
    with places.model.execute_fenced([places.x]) as execution:
        first, second = execution.wait(60)
    np.testing.assert_array_equal([first, second], [TWO_ROWS, -TWO_ROWS])


def test_a_loop_says_dimensions_of_outputs_and_what_has_no_room(client):
    with client.prepare(open_loop()) as model, client.segment(1 << 12) as segment:
        x, limit, y = (
            segment.place(*each) for each in (((2, 3), "f4"), ((1,), "i4"), ((6,), "f4"))
        )
        x.array[...] = TWO_ROWS
        limit.array[...] = 0
        inputs = [RequestArgument(each.location, each.array.shape) for each in (x, limit)]
        for size, status in ((24, ErrorStatus.NONE), (20, ErrorStatus.OUTPUT_INSUFFICIENT_SIZE)):
            output = RequestArgument(DataLocation(0, y.location.offset_bytes, size))
            request = Request(tuple(inputs), (output,), (RequestPool(segment.pool),))
            reply = client._session.expect(Executed, m.Execute(model.identifier, request))
            assert reply.status == status
            assert reply.shapes == (OutputShape((2, 3), is_sufficient=size == 24),)
        np.testing.assert_array_equal(y.array, TWO_ROWS.ravel())


def rows(count):
    return np.full((count, 3), count, np.float32)


def test_a_buffer_takes_the_dimensions_of_each_result_and_is_read_with_them(client):
    with client.prepare(sum_of_rows()) as model:
        one, other = (client.allocate(inputs=[(model, 0)], outputs=[(model, 0)]) for _ in range(2))
        for count in (2, 3, 1):
            model.execute([rows(count), rows(count)], [one.of()])
            with pytest.raises(DriverError) as caught:
                model.execute([one.of(count + 1, 3), rows(count + 1)])
            assert caught.value.status == IA
            model.execute([one.of(count, 3), rows(count)], [other.of(0, 3)])
            result = np.empty((count, 3), np.float32)
            other.copy_to(result)
            np.testing.assert_array_equal(result, 3 * rows(count))


def test_a_buffer_of_fixed_dimensions_cannot_hold_another_result(client):
    """E7: refused where the request says it, a failure where only the run shows it."""
    with client.prepare(sum_of_rows()) as model:
        buffer = client.allocate(outputs=[(model, 0)], inputs=[(model, 1)], dimensions=(1, 3))
        buffer.copy_from(rows(1))
        with pytest.raises(DriverError) as caught:
            model.execute([rows(2), rows(2)], [buffer.of(2, 3)])
        assert caught.value.status == IA
        np.testing.assert_array_equal(model.execute([rows(1), buffer.of(1, 3)])[0], 2 * rows(1))
        with pytest.raises(DriverError) as caught:
            model.execute([rows(2), rows(2)], [buffer.of()])
        assert caught.value.status == GF
        with pytest.raises(DriverError) as caught:  # D1: a failed execution has emptied it
            model.execute([rows(1), buffer.of(1, 3)])
        assert caught.value.status == GF


@pytest.mark.parametrize("dimensions", [(0, 3), ()])
def test_a_buffer_that_says_its_dimensions_when_it_is_filled(client, dimensions):
    """C2, C4: as much as its dimensions say, all of which must be given."""
    with client.prepare(sum_of_rows()) as model:
        buffer = client.allocate(inputs=[(model, 0)], dimensions=dimensions)
        for wrong in [(), (2,), (2, 4), (2, 0), (1, 3), (4, 3)]:
            with pytest.raises(DriverError) as caught:
                buffer.copy_from(rows(2), wrong)
            assert caught.value.status == IA
        buffer.copy_from(rows(2), (2, 3))
        np.testing.assert_array_equal(model.execute([buffer.of(2, 3), rows(2)])[0], 2 * rows(2))
