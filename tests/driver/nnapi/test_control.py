"""WHILE and IF, in a driver of another process."""

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.scenarios.driver.test_feature_levels import client_of
from tightship.driver import ModelBuilder, tensor_type
from tightship.driver.client.staging import stage
from tightship.driver.models.subgraph_sequence import Limit
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Executed
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

COUNT, FLAG, VALUE = tensor_type("i4", (1,)), tensor_type("?", (1,)), tensor_type("f4", (2, 3))
X = np.arange(6, dtype=np.float32).reshape(2, 3) / 10
LATE = ErrorStatus.MISSED_DEADLINE_PERSISTENT
"""Status of a call that comes after its deadline."""
W = np.float32([[0, 1, 0], [0.5, 0, 0.5], [1, 0, 0]])


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with driver(tmp_path_factory.mktemp("driver")) as running, running.client() as connected:
        yield connected


def is_before():
    """Build a condition: the count, the first of three values, is below the limit, the last."""
    builder = ModelBuilder()
    count, _, limit = (builder.input(kind) for kind in (COUNT, VALUE, COUNT))
    builder.operation(OperationType.LESS, [count, limit], [builder.output(FLAG)])
    return builder


def iteration(step):
    """An iteration: the count and one more, the value times a matrix; the limit stays."""
    builder = ModelBuilder()
    count, value, _ = (builder.input(kind) for kind in (COUNT, VALUE, COUNT))
    one, none = builder.constant([step], COUNT), builder.constant(0)
    builder.operation(OperationType.ADD, [count, one, none], [builder.output(COUNT)])
    weights, bias = builder.constant(W), builder.constant(np.zeros(3, np.float32))
    product = builder.temporary(VALUE)
    builder.operation(OperationType.FULLY_CONNECTED, [value, weights, bias, none], [product])
    builder.operation(OperationType.TANH, [product], [builder.output(VALUE)])
    return builder


def repeated(step=1):
    """tanh(x) through `limit` iterations, doubled: operations, a loop, operations."""
    builder = ModelBuilder()
    x, limit = builder.input(VALUE), builder.input(COUNT)
    first, count, last = (builder.temporary(kind) for kind in (VALUE, COUNT, VALUE))
    builder.operation(OperationType.TANH, [x], [first])
    names = [
        builder.subgraph(is_before()),
        builder.subgraph(iteration(step)),
        builder.constant([0], COUNT),
        first,
        limit,
    ]
    builder.operation(OperationType.WHILE, names, [count, last])
    builder.operation(OperationType.ADD, [last, last, builder.constant(0)], [builder.output(VALUE)])
    return builder


@pytest.mark.parametrize("iterations", [0, 1, 5, 40])
def test_a_loop_runs_as_often_as_its_condition_holds(client, iterations):
    builder = repeated()
    assert client.supported_operations(builder) == (True,) * 3
    with client.prepare(builder) as model:
        (result,) = model.execute([X, np.array([iterations], np.int32)])
    wanted = np.tanh(X)
    for _ in range(iterations):
        wanted = np.tanh(wanted @ W.T)
    np.testing.assert_allclose(result, 2 * wanted, 1e-5)


def endless(client, loop_timeout_ns, deadline_ns=-1):
    model = client.prepare(repeated(step=0))
    with client.segment(1 << 12) as segment:
        x, limit, y = (
            segment.place(*each) for each in (((2, 3), "f4"), ((1,), "i4"), ((2, 3), "f4"))
        )
        limit.array[...] = 1
        staged = stage(model.interface, [x, limit], [y], None)
        call = m.Execute(
            model.identifier,
            staged.request,
            deadline_ns=deadline_ns,
            loop_timeout_ns=loop_timeout_ns,
        )
        return client._session.expect(Executed, call)


def test_an_endless_loop_ends_with_its_timeout(client):
    with pytest.raises(DriverError) as caught:
        endless(client, 1_000_000)
    assert caught.value.status == ErrorStatus.MISSED_DEADLINE_TRANSIENT
    assert client.capabilities().feature_level


WAYS = {
    "sync": lambda model, given: model.execute(given, loop_timeout_s=0.001),
    "reusable": lambda model, given: model.reusable(given, loop_timeout_s=0.001).execute(),
    "fenced": lambda model, given: model.execute_fenced(given, loop_timeout_s=0.001).wait(60),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_an_endless_loop_ends_with_the_timeout_that_a_client_gives(tmp_path, monkeypatch, way):
    """InfiniteLoopTimeoutTest, which gives 1 ms; without it a loop may take 2 s."""
    heeded, of_loop = [], Limit.of_loop
    monkeypatch.setattr(
        Limit, "of_loop", lambda limit: heeded.append(limit.loop_timeout_ns) or of_loop(limit)
    )
    with (
        client_of(tmp_path) as client,
        client.prepare(repeated(step=0)) as model,
        pytest.raises(DriverError) as caught,
    ):
        way(model, [X, np.ones(1, np.int32)])
    assert caught.value.status in (
        ErrorStatus.MISSED_DEADLINE_TRANSIENT,
        ErrorStatus.GENERAL_FAILURE,  # a fence reports that it failed, not why
    )
    assert heeded == [1_000_000]


def test_an_endless_loop_ends_with_the_deadline_of_the_run(client):
    model, status = client.prepare(repeated(step=0)), LATE
    while status == LATE:  # until one begins in time
        with pytest.raises(DriverError) as caught:
            model.execute([X, np.ones(1, np.int32)], timeout_s=0.05)
        status = caught.value.status
    assert status == ErrorStatus.MISSED_DEADLINE_TRANSIENT


def square_or_relu():
    """x * x if the flag is set, else max(x, 0)."""
    builder = ModelBuilder()
    flag, x = builder.input(FLAG), builder.input(VALUE)
    square, relu = ModelBuilder(), ModelBuilder()
    value = square.input(VALUE)
    names = [value, value, square.constant(0)]
    square.operation(OperationType.MUL, names, [square.output(VALUE)])
    relu.operation(OperationType.RELU, [relu.input(VALUE)], [relu.output(VALUE)])
    names = [flag, builder.subgraph(square), builder.subgraph(relu), x]
    builder.operation(OperationType.IF, names, [builder.output(VALUE)])
    return builder


def test_a_branch_is_taken_as_the_flag_says(client):
    with client.prepare(square_or_relu()) as model:
        for flag in (True, False):
            (result,) = model.execute([np.array([flag]), -X])
            np.testing.assert_allclose(result, X * X if flag else 0 * X, 1e-6)


def changed_loop(change):
    """The loop with something changed that NNAPI forbids, or that is not translated."""
    builder = ModelBuilder()
    x, limit = builder.input(VALUE), builder.input(COUNT)
    condition, body = is_before(), iteration(1)
    names = [builder.subgraph(condition), builder.subgraph(body)]
    names += [builder.constant([0], COUNT), x, limit]
    outputs = [builder.temporary(COUNT), builder.output(VALUE)]
    change(builder, names, outputs)
    builder.operation(OperationType.WHILE, names, outputs)
    return builder


def drop_an_operand(_, names, __):
    del names[-1]


def swap_operands(_, names, __):
    names[2:4] = names[3], names[2]


def no_subgraph(_, names, __):
    names[0] = names[3]


def one_output_more(builder, _, outputs):
    outputs.append(builder.output(COUNT))


def body_as_condition(_, names, __):
    names[0] = names[1]


@pytest.mark.parametrize(
    "change", [drop_an_operand, swap_operands, no_subgraph, one_output_more, body_as_condition]
)
def test_a_loop_that_breaks_a_rule_is_refused(client, change):
    builder = changed_loop(change)
    assert client.supported_operations(builder) == (False,)
    with pytest.raises(DriverError, match="WHILE") as caught:
        client.prepare(builder)
    assert caught.value.status == ErrorStatus.INVALID_ARGUMENT


def test_the_loop_that_was_changed_is_sound_without(client):
    builder = changed_loop(lambda *_: None)
    assert client.supported_operations(builder) == (True,)
    client.prepare(builder).close()


def nested(depth):
    """Branches within branches: each of both is the same subgraph as the other."""
    inner = square_or_relu()
    for _ in range(depth):
        builder = ModelBuilder()
        flag, x = builder.input(FLAG), builder.input(VALUE)
        both = builder.subgraph(inner)
        builder.operation(OperationType.IF, [flag, both, both, flag, x], [builder.output(VALUE)])
        inner = builder
    return inner


@pytest.mark.parametrize("depth", [16, 12, 40], ids=["too deep", "too many", "both"])
def test_branches_that_multiply_are_refused_soon(client, depth):
    assert client.supported_operations(nested(depth)) == (False,)
    with pytest.raises(DriverError, match="flatter") as caught:
        client.prepare(nested(depth))
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE


def test_branches_within_branches_are_run(client):
    with client.prepare(nested(4)) as model:
        (result,) = model.execute([np.ones(1, bool), X])
        np.testing.assert_allclose(result, X * X, 1e-6)
