"""Models built operand by operand, in a driver of another process."""

import numpy as np
import pytest

from tests.driver.nnapi import reference
from tests.driver.nnapi.cases import CASES, Case, built
from tests.driver.nnapi.network import F16, F32, I8, U8, kind_of
from tests.driver.nnapi.test_translate import UNKNOWN_OPERATION, small_network, wanted_of
from tightship.driver import ModelBuilder, tensor_type
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

TYPES = {"float32": F32, "float16": F16, "quant8_asymm": U8, "quant8_asymm_signed": I8}


@pytest.mark.parametrize("operand_type", TYPES.values(), ids=TYPES.keys())
@pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())
def test_an_operation_gives_what_it_is(client, make, operand_type):
    network, wanted, kind = make(Case(operand_type))
    builder = built(network)
    assert client.supported_operations(builder) == (True,)
    with client.prepare(builder) as model:
        assert [value.operand_type for value in model.interface.outputs] == [operand_type]
        (result,) = model.execute(network.feeds)
    reference.assert_close(result, wanted, kind)


def test_a_network_of_several_operations_with_dimensions_left_open(client):
    network, *tensors = small_network(F32, {})
    with client.prepare(built(network)) as model:
        assert model.interface.outputs[0].dimensions == (1, 5)
        (result,) = model.execute(network.feeds)
    reference.assert_close(result, wanted_of(*tensors), kind_of(F32))


def sum_with(constant_of):
    """x + a constant, which a function adds to the builder."""
    builder, kind = ModelBuilder(), tensor_type("f4", (64,))
    names = [builder.input(kind), constant_of(builder, kind), builder.constant(0)]
    builder.operation(OperationType.ADD, names, [builder.output(kind)])
    return builder


X = np.linspace(0, 1, 64, dtype=np.float32)


def test_a_constant_lies_in_a_file_of_the_client(client, tmp_path):
    """The constant lies behind a header, as in a `.safetensors`, not in the message."""
    weights = np.arange(64, dtype=np.float32)
    path = tmp_path / "weights"
    path.write_bytes(bytes(20) + weights.tobytes())
    with path.open("rb") as file, client.file_pool(file.fileno()) as pool:
        model = client.prepare(sum_with(lambda b, kind: b.constant_in(pool, 20, kind)))
    np.testing.assert_array_equal(model.execute([X])[0], X + weights)


def test_a_file_that_ends_early_fails_to_prepare_and_nothing_else(client, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(bytes(256))
    with path.open("rb+") as file, client.file_pool(file.fileno()) as pool:
        builder = sum_with(lambda b, kind: b.constant_in(pool, 0, kind))
        file.truncate(100)
        with pytest.raises(DriverError, match="shorter") as caught:
            client.prepare(builder)
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE
    assert client.capabilities().feature_level


def test_a_model_too_large_for_a_message_comes_in_a_pool(client):
    builder, kind = ModelBuilder(), tensor_type("f4", (1,))
    value = builder.input(kind)
    big = builder.constant(np.arange(100, dtype=np.float32))
    for _ in range(1500):
        names, value = [value, builder.constant([1.0], kind), builder.constant(0)], None
        value = builder.temporary(kind)
        builder.operation(OperationType.ADD, names, [value])
    output = builder.output(tensor_type("f4", (100,)))
    builder.operation(OperationType.ADD, [value, big, builder.constant(0)], [output])
    with client.prepare(builder) as model:
        (result,) = model.execute([np.zeros(1, np.float32)])
    np.testing.assert_array_equal(result, 1500 + np.arange(100))


def test_what_cannot_be_run_is_said_operation_by_operation(client):
    builder, kind = ModelBuilder(), tensor_type("f4", (2,))
    value, between = builder.input(kind), builder.temporary(kind)
    builder.operation(OperationType.RELU, [value], [between])
    builder.operation(UNKNOWN_OPERATION, [between], [builder.output(kind)])
    assert client.supported_operations(builder) == (True, False)
    with pytest.raises(DriverError, match="type 5") as caught:
        client.prepare(builder)
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE


def test_a_model_that_breaks_a_rule_is_invalid_for_both_calls(client):
    builder, kind = ModelBuilder(), tensor_type("f4", (2,))
    builder.operation(OperationType.RELU, [7], [builder.output(kind)])
    for call in (client.supported_operations, client.prepare):
        with pytest.raises(DriverError, match="operand 7; the subgraph has 1") as caught:
            call(builder)
        assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
