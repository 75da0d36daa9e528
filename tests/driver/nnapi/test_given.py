"""Scalars that are inputs of a model: run where no shape depends on them, else refused by name."""

import numpy as np
import pytest

from tests.driver.nnapi import reference
from tests.driver.nnapi.cases import IMAGE, Case, built
from tests.driver.nnapi.network import F16, F32, I8, I32, U8, Network, kind_of
from tightship.driver import ModelBuilder, tensor_type
from tightship.driver.nnapi import graph_of, supported_operations
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError

SCALAR = ValueType(OperandType.INT32)
X = np.array([-9, -0.5, 0, 0.5, 3, 9], np.float32)


def client_sum(kind):
    """The test of NNAPI's own memory domains: an addition whose activation is input 2."""
    builder = ModelBuilder()
    names = [builder.input(kind), builder.input(kind), builder.input(SCALAR)]
    builder.operation(OperationType.ADD, names, [builder.output(kind)])
    return builder


def test_an_addition_takes_its_activation_from_each_request(client):
    builder = client_sum(tensor_type("f4", (6,)))
    assert client.supported_operations(builder) == (True,)
    with client.prepare(builder) as model:
        for activation in (0, 1, 2, 3, 1, 0):
            (result,) = model.execute([X, X, np.int32(activation)])
            np.testing.assert_array_equal(result, reference.activated(2 * X, activation))
        for wrong in (4, -1, -5, 2**31 - 1):
            with pytest.raises(DriverError) as caught:
                model.execute([X, X, np.int32(wrong)])
            assert caught.value.status == ErrorStatus.GENERAL_FAILURE
        (result,) = model.execute([X, X, np.int32(3)])
        np.testing.assert_array_equal(result, reference.activated(2 * X, 3))


def test_so_it_does_where_requests_give_dimensions_too(client):
    with client.prepare(client_sum(tensor_type("f4", (0,)))) as model:
        for length, activation in ((6, 1), (3, 2), (6, 3)):
            (result,) = model.execute([X[:length], X[:length], np.int32(activation)])
            np.testing.assert_array_equal(result, reference.activated(2 * X[:length], activation))


def convolution(case):
    x, image, kind = case.input(IMAGE)
    w, weights, other = case.weights((3, 3, 2, 4))
    b, bias = case.bias(3, kind.scale * other.scale)
    geometry = (3, 2), (1, 1), (1, 1), ((0, 0), (0, 0))
    names = [x, w, b, *case.network.scalars(2, 1, 1)]
    return "CONV_2D", names, reference.convolution(image, weights, bias, *geometry), None


def depthwise(case):
    x, image, kind = case.input(IMAGE)
    w, weights, other = case.weights((1, 3, 2, 8))
    b, bias = case.bias(8, kind.scale * other.scale)
    wanted = reference.depthwise(image, weights, bias, (3, 2), (1, 1), (1, 1), ((0, 0), (0, 0)))
    names = [x, w, b, *case.network.scalars(2, 1, 1), case.network.given(2)]
    return "DEPTHWISE_CONV_2D", names, wanted, None


def layer(case):
    x, value, kind = case.input((2, 5))
    w, weights, other = case.weights((6, 5))
    b, bias = case.bias(6, kind.scale * other.scale)
    return "FULLY_CONNECTED", [x, w, b], value @ weights.T + bias, None


def pool(case):
    x, image, kind = case.input(IMAGE)
    wanted = reference.max_pool(image, (2, 3), (2, 1), (1, 1), ((0, 0), (0, 0)))
    names = [x, *case.network.scalars(2, 1, 2, 3, 2)]
    return "MAX_POOL_2D", names, wanted, kind_of(case.type, wanted.shape, kind.scale, 0)


@pytest.mark.parametrize("activation", [0, 1, 2, 3])
@pytest.mark.parametrize("operand_type", [F32, F16, U8, I8], ids=["f32", "f16", "u8", "i8"])
@pytest.mark.parametrize("make", [convolution, depthwise, layer, pool])
def test_an_activation_may_be_an_input(make, operand_type, activation):
    case = Case(operand_type)
    name, names, wanted, kind = make(case)
    if kind is not None and make is pool:
        kind = kind_of(operand_type, wanted.shape, *quantization(case))
    names.append(case.network.given(activation))
    network, wanted, kind = case.done(name, names, reference.activated(wanted, activation), kind)
    assert supported_operations(network.model()) == (True,)
    reference.assert_close(network.run(), wanted, kind)


def quantization(case):
    """Return the quantization of the input, which a pool keeps."""
    value_type = case.network.operands[0].value_type
    return value_type.scale, value_type.zero_point


def of_integers(name, activation):
    network, kind = Network(), kind_of(I32, (3,))
    names = [network.input([7, -7, 5], kind), network.input([2, 2, -5], kind)]
    network.add(name, [*names, network.given(activation)], network.output(kind))
    return network


@pytest.mark.parametrize(("name", "wanted"), [("ADD", [9, -5, 0]), ("DIV", [3, -4, -1])])
def test_integers_have_the_one_activation_that_they_may(name, wanted):
    assert of_integers(name, 0).run().tolist() == wanted
    for activation in (1, 3, -1):
        with pytest.raises(InputError):
            of_integers(name, activation).run()


def of_softmax(operand_type, beta, axis=None):
    network = Network()
    case = Case(operand_type)
    case.network = network
    x, value, _ = case.input((2, 3, 4))
    factor = np.float16(beta) if operand_type == F16 else float(beta)
    names = [x, network.given(factor)]
    if axis is not None:
        names.append(network.given(axis))
    scale = 0.0, 0
    if operand_type in {U8, I8}:
        scale = 1 / 256, -128 * (operand_type == I8)
    kind = kind_of(operand_type, (2, 3, 4), *scale)
    network.add("SOFTMAX", names, network.output(kind))
    return network, value, kind


@pytest.mark.parametrize("operand_type", [F32, F16, U8, I8], ids=["f32", "f16", "u8", "i8"])
def test_a_softmax_takes_factor_and_axis(operand_type):
    for beta, axis in ((1, None), (0.5, None), (2, 0), (1, 1), (0.25, -1), (1, -3)):
        network, value, kind = of_softmax(operand_type, beta, axis)
        assert supported_operations(network.model()) == (True,)
        wanted = reference.softmax(value, beta, -1 if axis is None else axis)
        reference.assert_close(network.run(), wanted, kind)


@pytest.mark.parametrize(("beta", "axis"), [(0, 0), (-1, 0), (np.nan, 0), (1, 3), (1, -4)])
def test_a_softmax_with_what_nnapi_does_not_allow_fails(beta, axis):
    with pytest.raises(InputError):
        of_softmax(F32, beta, axis)[0].run()


def of_multiplier(multiplier):
    case = Case(F32)
    x, *_ = case.input(IMAGE)
    w, *_ = case.weights((1, 3, 2, 8))
    b, _ = case.bias(8, 1.0)
    scalars = case.network.scalars(2, 1, 1)
    names = [x, w, b, *scalars, case.network.given(multiplier), case.network.scalar(0)]
    case.network.add("DEPTHWISE_CONV_2D", names, case.network.output(kind_of(F32, (1, 4, 4, 8))))
    return case.network


def test_a_multiplier_must_be_what_the_filter_has():
    assert of_multiplier(2).run().shape == (1, 4, 4, 8)
    for wrong in (1, 4, 0, -2):
        with pytest.raises(InputError):
            of_multiplier(wrong).run()


def of_shape(lengths, declared):
    network, kind = Network(), kind_of(F32, (6,))
    names = [network.input(X, kind), network.input(lengths, kind_of(I32, (len(lengths),)))]
    network.add("RESHAPE", names, network.output(kind_of(F32, declared)))
    return network


def test_a_shape_may_be_an_input_where_the_model_declares_it():
    for lengths in ([2, 3], [-1, 3], [2, -1]):
        network = of_shape(lengths, (2, 3))
        assert supported_operations(network.model()) == (True,)
        np.testing.assert_array_equal(network.run(), X.reshape(2, 3))
    for wrong in ([3, 2], [-1, -1], [2, 0], [-2, 3]):
        with pytest.raises(InputError):
            of_shape(wrong, (2, 3)).run()
    for lengths, declared in (([2, 3], (6,)), ([2, 3], (2, 4))):
        assert supported_operations(of_shape(lengths, declared).model()) == (False,)


def refused(network, reason, at):
    assert supported_operations(network.model()) == (False,)
    with pytest.raises(DriverError, match=reason) as caught:
        graph_of(network.model())
    assert f"(input {at}) must be a constant, since the output's shape depends" in str(caught.value)
    assert caught.value.status == ErrorStatus.GENERAL_FAILURE


@pytest.mark.parametrize("at", [3, 4, 5])
def test_a_geometry_that_only_a_request_says_is_refused_by_name(at):
    case = Case(F32)
    name, names, wanted, _ = convolution(case)
    names[at] = case.network.given(1)
    network, *_ = case.done(name, [*names, case.network.scalar(0)], wanted)
    refused(network, r"Operation 0 \(CONV_2D\) cannot be translated: operand \d+ ", at)


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5])
def test_a_window_that_only_a_request_says_is_refused_by_name(at):
    case = Case(F32)
    name, names, wanted, kind = pool(case)
    names[at] = case.network.given(1)
    network, *_ = case.done(name, [*names, case.network.scalar(0)], wanted, kind)
    refused(network, r"Operation 0 \(MAX_POOL_2D\)", at)


def test_a_layout_an_axis_and_an_open_shape_are_refused_by_name():
    case = Case(F32)
    name, names, wanted, kind = pool(case)
    names += [case.network.scalar(0), case.network.given(False)]
    network, *_ = case.done(name, names, wanted, kind)
    refused(network, "MAX_POOL_2D", 7)
    network = Network()
    ends = [network.input(X, kind_of(F32, (6,))) for _ in range(2)]
    joined = network.output(kind_of(F32, (12,)))
    network.add("CONCATENATION", [*ends, network.given(0)], joined)
    refused(network, "CONCATENATION", 2)
    refused(of_shape([2, 3], ()), "RESHAPE", 1)


def test_a_scalar_of_another_type_or_without_value_is_refused():
    for make in (lambda n: n.given(1.0), lambda n: n.temporary(SCALAR)):
        network, kind = Network(), kind_of(F32, (6,))
        names = [network.input(X, kind), network.input(X, kind)]
        network.add("ADD", [*names, make(network)], network.output(kind))
        with pytest.raises(DriverError, match=r"FLOAT32; NNAPI requires INT32|operand 2"):
            graph_of(network.model())


def test_a_client_builds_such_a_model(client):
    network, value, kind = of_softmax(F32, 0.5, 1)
    with client.prepare(built(network)) as model:
        for beta, axis in ((0.5, 1), (2.0, -1), (1.0, 0)):
            feeds = [network.feeds[0], np.float32(beta), np.int32(axis)]
            (result,) = model.execute(feeds)
            reference.assert_close(result, reference.softmax(value, beta, axis), kind)


def branch(operation):
    builder, kind = ModelBuilder(), tensor_type("f4", (6,))
    x, activation = builder.input(kind), builder.input(SCALAR)
    builder.operation(operation, [x, x, activation], [builder.output(kind)])
    return builder


@pytest.mark.parametrize("is_constant", [False, True])
def test_a_branch_is_given_its_activation(client, is_constant):
    builder, flag = ModelBuilder(), tensor_type("?", (1,))
    condition, x = builder.input(flag), builder.input(tensor_type("f4", (6,)))
    activation = builder.constant(3) if is_constant else builder.input(SCALAR)
    branches = [builder.subgraph(branch(each)) for each in (OperationType.ADD, OperationType.MUL)]
    names = [condition, *branches, x, activation]
    builder.operation(OperationType.IF, names, [builder.output(tensor_type("f4", (6,)))])
    with client.prepare(builder) as model:
        for is_sum, number in ((True, 3), (False, 3), (True, 0), (False, 2)):
            given = [] if is_constant else [np.int32(number)]
            (result,) = model.execute([np.array([is_sum]), X, *given])
            wanted = 2 * X if is_sum else X * X
            bounded = reference.activated(wanted, 3 if is_constant else number)
            np.testing.assert_array_equal(result, bounded)
