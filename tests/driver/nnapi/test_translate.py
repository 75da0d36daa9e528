"""Whole models: networks, pools, unknown dimensions, and what can be translated."""

import numpy as np
import pytest

from tests.driver.nnapi import reference
from tests.driver.nnapi.network import F32, I32, U8, Network, kind_of, of_one, run
from tightship.driver.nnapi import graph_of, supported_operations
from tightship.driver.types.model import DataLocation, Lifetime
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError
from tightship.graph import MappedFile

UNKNOWN_OPERATION = 5
IMAGE = (1, 8, 8, 2)


def small_network(operand_type, scales):
    """A convolution, a pool, a reshape, a layer and a softmax, shapes between them unknown."""
    rng = np.random.default_rng(3)
    is_real = operand_type == F32

    def kind(shape, scale, zero_point=0):
        return kind_of(operand_type, shape, 0 if is_real else scale, 0 if is_real else zero_point)

    def weights(shape):
        array = rng.uniform(-1, 1, shape) if is_real else rng.integers(0, 20, shape)
        bias = kind_of(I32 if not is_real else F32, shape[:1], 0 if is_real else scales[len(shape)])
        found = array, kind(shape, 0.05, 10)
        return [network.constant(*found), network.constant(np.zeros(shape[0]), bias)], found

    network = Network()
    image = rng.uniform(0, 2, IMAGE) if is_real else rng.integers(0, 200, IMAGE)
    value = network.input(image, kind(IMAGE, 0.01))
    filters, first = weights((4, 3, 3, 2))
    names = [value, *filters, *network.scalars(1, 1, 1, 1)]
    value = network.add("CONV_2D", names, network.temporary(kind((), 0.02)))
    names = [value, *network.scalars(2, 2, 2, 2, 2, 0)]
    value = network.add("AVERAGE_POOL_2D", names, network.temporary(kind((), 0.02)))
    lengths = network.constant([1, -1], kind_of(I32, (2,)))
    value = network.add("RESHAPE", [value, lengths], network.temporary(kind((), 0.02)))
    matrix, second = weights((5, 64))
    names = [value, *matrix, network.scalar(0)]
    value = network.add("FULLY_CONNECTED", names, network.temporary(kind((), 0.05, 128)))
    output = network.output(kind((1, 5), 1 / 256))
    network.add("SOFTMAX", [value, network.scalar(1.0)], output)
    return network, (image, kind(IMAGE, 0.01)), first, second


def wanted_of(image, first, second):
    value = reference.convolution(
        reference.real(*image), reference.real(*first), 0, (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1))
    )
    value = reference.average_pool(
        reference.activated(value, 1), (2, 2), (2, 2), (1, 1), ((0, 0), (0, 0))
    )
    return reference.softmax(value.reshape(1, 64) @ reference.real(*second).T, 1, 1)


def test_a_network_of_floats_is_what_its_operations_are():
    network, *tensors = small_network(F32, {})
    wanted = wanted_of(*tensors)
    reference.assert_close(network.run(), wanted, kind_of(F32))


def test_a_network_of_quantized_numbers_is_near_what_its_operations_are():
    network, *tensors = small_network(U8, {4: 0.01 * 0.05, 2: 0.02 * 0.05})
    wanted = wanted_of(*tensors)
    assert np.abs(network.run() / 256 - wanted).max() < 0.1
    assert supported_operations(network.model()) == (True,) * 5


def test_a_constant_of_a_pool_is_a_view_of_it():
    data = bytes(64) + np.arange(4, dtype=np.float32).tobytes()
    kind = kind_of(F32, (4,))
    network = Network()
    left = network.input(np.ones(4), kind)
    right = network.operand(kind, Lifetime.CONSTANT_REFERENCE, DataLocation(0, 64, 16))
    network.add("ADD", [left, right, network.scalar(0)], network.output(kind))
    pools = [MappedFile.of_bytes(data, "a pool")]
    model = network.model(7)
    graph = graph_of(model, pools)
    address = np.frombuffer(data, np.uint8).ctypes.data
    assert graph.constants["operand1"].array().ctypes.data == address + 64
    assert run(graph, network.feeds)[0].tolist() == [1, 2, 3, 4]
    assert supported_operations(model, pools) == (True,)


def test_dimensions_of_a_request_fill_what_the_model_leaves_unknown():
    kind = kind_of(F32, (0, 3))
    network = of_one("RELU", [(-np.ones((2, 3)), kind)], kind)
    graph = graph_of(network.model(), dimensions={0: (2, 3)})
    assert run(graph, network.feeds)[0].tolist() == [[0] * 3] * 2
    with pytest.raises(
        DriverError, match=r"Operand 0 is an input of dimensions \[0, 3\]"
    ) as caught:
        graph_of(network.model())
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE
    with pytest.raises(
        DriverError, match=r"given dimensions \[2, 4\]; the model's are \[0, 3\]"
    ) as caught:
        graph_of(network.model(), dimensions={0: (2, 4)})
    assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
    assert supported_operations(network.model()) == (True,)


def test_an_operation_after_one_that_is_not_translated_still_is():
    kind = kind_of(F32, (2,))
    network = Network()
    first = network.add("RELU", [network.input([1, 2], kind)], network.temporary(kind))
    other = network.add(UNKNOWN_OPERATION, [first], network.temporary(kind))
    open_ended = network.add(UNKNOWN_OPERATION, [first], network.temporary(kind_of(F32)))
    network.add("TANH", [other], network.output(kind))
    network.add("TANH", [open_ended], network.output(kind))
    assert supported_operations(network.model()) == (True, False, False, True, True)
    with pytest.raises(DriverError, match=r"Operation 1 \(type 5\) cannot be translated") as caught:
        graph_of(network.model())
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE


def test_a_declared_output_that_the_inputs_do_not_make_is_refused():
    network = of_one("RELU", [(np.ones(2), kind_of(F32, (2,)))], kind_of(F32, (3,)))
    with pytest.raises(DriverError, match=r"operand 1 \(output 0\) has dimensions \[3\]"):
        graph_of(network.model())


@pytest.mark.parametrize("count", range(15))
def test_any_number_of_arguments_is_answered(count):
    """Each operation, with arguments of every type: supported or not, and no other error."""
    for operation_type in range(100):
        network = Network()
        names = [network.input(np.ones(1), kind_of(F32, (1,)))]
        names += [network.scalar(value) for value in (1, False, 1.0) * 5]
        output = network.output(kind_of(F32))
        network.add(operation_type, names[:count], output)
        assert supported_operations(network.model()) in {(True,), (False,)}
