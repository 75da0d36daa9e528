"""Loops whose state changes its dimensions, and branches that give different ones."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from tests.driver.nnapi.test_control import COUNT, FLAG, W
from tests.driver.nnapi.test_translate import UNKNOWN_OPERATION
from tightship._core import StopFlag
from tightship.driver import ModelBuilder, tensor_type
from tightship.driver.client.assembling import assembled
from tightship.driver.client.staging import stage
from tightship.driver.models import deferred_routines
from tightship.driver.models.loader import PROGRAMS, Loader
from tightship.driver.models.subgraph_sequence import Limit
from tightship.driver.nnapi import routine_of
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.nnapi.routine import DeferredRoutine
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import UNTIMED, Executed, OutputShape
from tightship.driver.types.status import ErrorStatus
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import DriverError

ROWS, FIXED, ANY = tensor_type("f4", (0, 3)), tensor_type("f4", (2, 3)), tensor_type("f4", None)
PATIENT = {"loop_timeout_s": 15}
"""Timeout of loops whose iterations are prepared on a machine that other processes use too."""
X = np.arange(6, dtype=np.float32).reshape(2, 3) / 10


def below(value=ROWS):
    """Build a condition: the count, the first of three values, is below the limit, the last."""
    builder = ModelBuilder()
    count, _, limit = (builder.input(kind) for kind in (COUNT, value, COUNT))
    builder.operation(OperationType.LESS, [count, limit], [builder.output(FLAG)])
    return builder


def growing(value=ROWS):
    """An iteration: the count and one more; the rows, and below them the same times a matrix."""
    builder = ModelBuilder()
    count, rows, _ = (builder.input(kind) for kind in (COUNT, value, COUNT))
    none = builder.constant(0)
    one = builder.constant([1], COUNT)
    builder.operation(OperationType.ADD, [count, one, none], [builder.output(COUNT)])
    product = builder.temporary(value)
    names = [rows, builder.constant(W), builder.constant(np.zeros(3, np.float32)), none]
    builder.operation(OperationType.FULLY_CONNECTED, names, [product])
    names = [rows, product, builder.constant(0)]
    builder.operation(OperationType.CONCATENATION, names, [builder.output(value)])
    return builder


def doubled(given=FIXED, made=ROWS, inner=ROWS):
    """The rows grown as often as the second input says, then doubled, the weights above them."""
    builder = ModelBuilder()
    x, limit = builder.input(given), builder.input(COUNT)
    last = builder.temporary(inner)
    names = [builder.subgraph(below(inner)), builder.subgraph(growing(inner))]
    names += [builder.constant([0], COUNT), x, limit]
    builder.operation(OperationType.WHILE, names, [builder.temporary(COUNT), last])
    twice = builder.temporary(inner)
    builder.operation(OperationType.ADD, [last, last, builder.constant(0)], [twice])
    names = [builder.constant(W), twice, builder.constant(0)]
    builder.operation(OperationType.CONCATENATION, names, [builder.output(made)])
    return builder


def wanted_of(x, iterations):
    for _ in range(iterations):
        x = np.concatenate([x, x @ W.T])
    return np.concatenate([W, 2 * x])


@pytest.mark.parametrize("inner", [ROWS, ANY], ids=["unknown length", "unknown rank"])
@pytest.mark.parametrize("given", [FIXED, ROWS], ids=["known inputs", "open inputs"])
def test_a_state_may_change_its_dimensions_between_iterations(client, given, inner):
    builder = doubled(given, inner, inner)
    assert client.supported_operations(builder) == (True,) * 3
    with client.prepare(builder) as model:
        assert model.interface.outputs[0].dimensions == inner.dimensions
        for iterations in (0, 1, 5, 2, 8, 0):
            (result,) = model.execute([X, np.array([iterations], np.int32)], **PATIENT)
            np.testing.assert_allclose(result, wanted_of(X, iterations), 1e-5)


def test_a_burst_a_reusable_execution_and_a_fenced_one_give_the_same(client):
    given, wanted = [X, np.array([3], np.int32)], wanted_of(X, 3)
    with (
        client.prepare(doubled()) as model,
        model.burst() as burst,
        model.reusable(given, **PATIENT) as reusable,
        model.execute_fenced(given, **PATIENT) as fenced,
    ):
        for results in (burst.execute(given), reusable.execute(), fenced.wait(60)):
            np.testing.assert_allclose(results[0], wanted, 1e-5)


def placed_run(client, iterations, shape, dimensions):
    """A run whose output has a place of a shape, and dimensions of its own in the request."""
    with client.prepare(doubled()) as model, client.segment(1 << 12) as segment:
        x, limit, y = (
            segment.place(*each) for each in (((2, 3), "f4"), ((1,), "i4"), (shape, "f4"))
        )
        x.array[...], limit.array[...] = X, iterations
        request = stage(model.interface, [x, limit], [y], None).request
        outputs = (replace(request.outputs[0], dimensions=dimensions),)
        call = m.Execute(
            model.identifier, replace(request, outputs=outputs), loop_timeout_ns=15 * 10**9
        )
        return client._session.expect(Executed, call), y.array


@pytest.mark.parametrize("dimensions", [(), (0, 3), (0, 0)])
def test_an_output_without_room_is_reported_with_its_shape(client, dimensions):
    reply, _ = placed_run(client, 2, (10, 3), dimensions)
    assert reply.status is ErrorStatus.OUTPUT_INSUFFICIENT_SIZE
    assert reply.shapes == (OutputShape((11, 3), is_sufficient=False),)
    assert reply.timing == UNTIMED
    reply, array = placed_run(client, 2, (12, 3), dimensions)
    assert (reply.status, reply.shapes) == (ErrorStatus.NONE, (OutputShape((11, 3)),))
    np.testing.assert_allclose(array[:11], wanted_of(X, 2), 1e-5)


@pytest.mark.parametrize("shape", [(10, 3), (12, 3), (1, 3)])
def test_an_output_of_dimensions_that_are_not_made_fails_as_the_run_has_ended(client, shape):
    with pytest.raises(DriverError, match=r"dimensions \[11, 3\]; the model declares") as caught:
        placed_run(client, 2, shape, shape)
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE


def test_a_buffer_takes_what_each_run_makes(client):
    """A dynamic buffer as output, then as input of a model of open dimensions."""
    relu = ModelBuilder()
    relu.operation(OperationType.RELU, [relu.input(ROWS)], [relu.output(ROWS)])
    with client.prepare(doubled()) as model, client.prepare(relu) as other:
        buffer = client.allocate(outputs=[(model, 0)], inputs=[(other, 0)])
        for iterations in (1, 3, 0):
            model.execute([X, np.array([iterations], np.int32)], [buffer.of()], **PATIENT)
            wanted = wanted_of(X, iterations)
            np.testing.assert_allclose(buffer.value(), wanted, 1e-5)
            (result,) = other.execute([buffer.of(*wanted.shape)])
            np.testing.assert_allclose(result, np.maximum(wanted, 0), 1e-5)


def branches():
    """The rows if the flag is set, else their first two and themselves; then twice that."""
    builder, one, other = ModelBuilder(), ModelBuilder(), ModelBuilder()
    flag, x = builder.input(FLAG), builder.input(FIXED)
    one.operation(OperationType.RELU, [one.input(FIXED)], [one.output(ROWS)])
    value = other.input(FIXED)
    names = [value, value, other.constant(0)]
    other.operation(OperationType.CONCATENATION, names, [other.output(ROWS)])
    first = builder.temporary(ROWS)
    names = [flag, builder.subgraph(one), builder.subgraph(other), x]
    builder.operation(OperationType.IF, names, [first])
    names = [first, first, builder.constant(0)]
    builder.operation(OperationType.ADD, names, [builder.output(ANY)])
    return builder


def test_branches_may_give_values_of_different_dimensions(client):
    with client.prepare(branches()) as model:
        for flag in (True, False, True):
            (result,) = model.execute([np.array([flag]), X])
            np.testing.assert_allclose(result, 2 * (X if flag else np.concatenate([X, X])))


def nested(iterations):
    """Build a loop with an inner loop, which grows the rows `iterations` times, in its body."""
    body, builder = ModelBuilder(), ModelBuilder()
    count, rows, _ = (body.input(kind) for kind in (COUNT, ROWS, COUNT))
    names = [count, body.constant([1], COUNT), body.constant(0)]
    body.operation(OperationType.ADD, names, [body.output(COUNT)])
    inner = [body.subgraph(below()), body.subgraph(growing()), body.constant([0], COUNT)]
    last = body.temporary(ROWS)
    body.operation(
        OperationType.WHILE,
        [*inner, rows, body.constant([iterations], COUNT)],
        [body.temporary(COUNT), last],
    )
    body.operation(OperationType.TANH, [last], [body.output(ROWS)])
    names = [builder.subgraph(below()), builder.subgraph(body), builder.constant([0], COUNT)]
    names += [builder.input(FIXED), builder.input(COUNT)]
    outputs = [builder.temporary(COUNT), builder.output(ROWS)]
    builder.operation(OperationType.WHILE, names, outputs)
    return builder


def test_a_loop_within_a_loop_may_change_dimensions_too(client):
    with client.prepare(nested(2)) as model:
        for iterations in (2, 0, 1):
            x = X
            for _ in range(iterations):
                x = np.tanh(wanted_of(x, 2)[3:] / 2)
            (result,) = model.execute([X, np.array([iterations], np.int32)], **PATIENT)
            np.testing.assert_allclose(result, x, 1e-5)


def test_a_loop_whose_state_grows_ends_with_its_timeout_or_with_too_large_a_state(client):
    """The loop's state doubles with every iteration, without end."""
    with client.prepare(doubled()) as model:
        with pytest.raises(DriverError, match=r"its timeout|its deadline") as caught:
            model.execute([X, np.array([1 << 30], np.int32)], loop_timeout_s=0.05)
        assert caught.value.status == ErrorStatus.MISSED_DEADLINE_TRANSIENT
        (result,) = model.execute([X, np.array([1], np.int32)], **PATIENT)
        np.testing.assert_allclose(result, wanted_of(X, 1), 1e-5)


def test_a_state_larger_than_a_length_can_say_is_refused(monkeypatch):
    given, late = [np.zeros((4, 4), np.float32)], DeferredRoutine((0, 1), (0,), ((),), None)
    monkeypatch.setattr(deferred_routines, "VALUE_BYTES_MAX", 63)
    with pytest.raises(DriverError, match="has 64 bytes") as caught:
        deferred_routines.DeferredRoutines(Loader(None)).run(late, given, None)
    assert caught.value.status == ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT


def test_what_a_loop_makes_must_have_the_dimensions_that_the_model_declares(client):
    """The run finds the mismatch: after one iteration there are 4 rows, after two 8."""
    builder = ModelBuilder()
    x, limit = builder.input(FIXED), builder.input(COUNT)
    four = builder.temporary(tensor_type("f4", (4, 3)))
    names = [builder.subgraph(below()), builder.subgraph(growing())]
    names += [builder.constant([0], COUNT), x, limit]
    builder.operation(OperationType.WHILE, names, [builder.temporary(COUNT), four])
    builder.operation(OperationType.RELU, [four], [builder.output(ROWS)])
    with client.prepare(builder) as model:
        assert model.interface.outputs[0].dimensions == (4, 3)
        (result,) = model.execute([X, np.array([1], np.int32)], **PATIENT)
        np.testing.assert_allclose(result, wanted_of(X, 1)[3:] / 2, 1e-5)
        with pytest.raises(DriverError) as caught:
            model.execute([X, np.array([2], np.int32)], **PATIENT)
        assert caught.value.status == ErrorStatus.GENERAL_FAILURE


def test_an_error_after_a_loop_in_all_dimensions_is_refused_before_it_runs(client):
    builder = doubled()
    wrong = replace(builder.operations[-1], operation_type=UNKNOWN_OPERATION)
    builder.operations[-1] = wrong
    assert client.supported_operations(builder) == (True, True, False)
    with pytest.raises(DriverError, match="type 5"):
        client.prepare(builder)


def heavy():
    """Rows of 512 that grow by a matrix of 1 MiB."""
    rows = tensor_type("f4", (0, 512))
    body, builder = ModelBuilder(), ModelBuilder()
    count, value, _ = (body.input(kind) for kind in (COUNT, rows, COUNT))
    none, product = body.constant(0), body.temporary(rows)
    names = [count, body.constant([1], COUNT), none]
    body.operation(OperationType.ADD, names, [body.output(COUNT)])
    weights = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32) / 512
    names = [value, body.constant(weights), body.constant(np.zeros(512, np.float32)), none]
    body.operation(OperationType.FULLY_CONNECTED, names, [product])
    names = [value, product, body.constant(0)]
    body.operation(OperationType.CONCATENATION, names, [body.output(rows)])
    names = [builder.subgraph(below(rows)), builder.subgraph(body), builder.constant([0], COUNT)]
    names += [builder.input(tensor_type("f4", (1, 512))), builder.input(COUNT)]
    builder.operation(OperationType.WHILE, names, [builder.temporary(COUNT), builder.output(rows)])
    return builder, weights


def test_weights_of_a_loop_are_there_once_and_counted(client):
    builder, weights = heavy()
    x = np.ones((1, 512), np.float32)
    with client.prepare(builder) as model:
        (result,) = model.execute([x, np.array([5], np.int32)], **PATIENT)
        assert result.shape == (32, 512)
        np.testing.assert_allclose(result[1:2], x @ weights.T, 1e-3, 1e-3)
        (share,) = client.inspect().clients[-1].models
    assert weights.nbytes <= share.weights_bytes < 2 * weights.nbytes


def flat_or_not():
    """The rows as one row of one axis if the flag is set; and constants, joined."""
    builder, one, other = ModelBuilder(), ModelBuilder(), ModelBuilder()
    flag, x = builder.input(FLAG), builder.input(FIXED)
    names = [one.input(FIXED), one.constant(np.array([-1], np.int32))]
    one.operation(OperationType.RESHAPE, names, [one.output(ANY)])
    other.operation(OperationType.TANH, [other.input(FIXED)], [other.output(ANY)])
    first = builder.temporary(ANY)
    names = [flag, builder.subgraph(one), builder.subgraph(other), x]
    builder.operation(OperationType.IF, names, [first])
    builder.operation(OperationType.RELU, [first], [builder.output(ANY)])
    constant = builder.constant(W)
    names = [constant, constant, builder.constant(0)]
    builder.operation(OperationType.ADD, names, [builder.output(ANY)])
    return builder


def test_branches_may_give_values_of_different_ranks(client):
    with client.prepare(flat_or_not()) as model:
        for flag in (True, False, True):
            result, constants = model.execute([np.array([flag]), X])
            np.testing.assert_allclose(result, X.ravel() if flag else np.tanh(X), 1e-6)
            np.testing.assert_array_equal(constants, 2 * W)


def test_threads_run_a_model_of_changing_dimensions_at_once(served):
    def run(iterations):
        with served.client() as client, client.prepare(doubled()) as model:
            for more in (0, 2, 1):
                given = [X, np.array([iterations + more], np.int32)]
                np.testing.assert_allclose(
                    model.execute(given, **PATIENT)[0], wanted_of(X, iterations + more), 1e-5
                )
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(4)))


def test_a_reusable_execution_fails_where_an_input_has_come_to_make_other_dimensions(client):
    with client.prepare(doubled()) as model, client.segment(1 << 12) as segment:
        x, limit = segment.place((2, 3), "f4"), segment.place((1,), "i4")
        x.array[...], limit.array[...] = X, 2
        with model.reusable([x, limit], **PATIENT) as reusable:
            np.testing.assert_allclose(reusable.execute()[0], wanted_of(X, 2), 1e-5)
            limit.array[...] = 3
            with pytest.raises(DriverError) as caught:
                reusable.execute()
            assert caught.value.status == ErrorStatus.GENERAL_FAILURE
            limit.array[...] = 2
            np.testing.assert_allclose(reusable.execute()[0], wanted_of(X, 2), 1e-5)


def test_iterations_of_many_dimensions_stay_ready_for_the_next_run():
    """More than a model of open dimensions stays ready for; those run twice are kept."""
    body = ModelBuilder()
    value = body.input(ROWS)
    names = [value, body.constant(W), body.constant(0)]
    body.operation(OperationType.CONCATENATION, names, [body.output(ROWS)])
    model, translated = assembled(body).model(None), []

    def translate(dimensions):
        translated.append(dimensions[0])
        return routine_of(model, [], dimensions)

    late = DeferredRoutine((0, 1), (0,), ((0, 3),), translate)
    routines = deferred_routines.DeferredRoutines(Loader(ArenaGroup()))
    lengths = range(1, PROGRAMS + 9)
    for iteration in range(3):
        if iteration == 2:
            translated.clear()
        for rows in lengths:
            x = np.full((rows, 3), rows, np.float32)
            (result,) = routines.run(late, [x], Limit(StopFlag(), 10**9))
            np.testing.assert_array_equal(result, np.concatenate([x, W]))
    assert not translated
    routines.close()
