"""Files whose batch is opened: constants for each sample, and names that are taken."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.graph.batch_axis.opened import check_samples, opened
from tests.zoo.net import Net
from tightship.frontend.model_file import open_model_bytes
from tightship.graph.batch_axis import FixedBatchError


@pytest.mark.parametrize("batch", [1, 2])
def test_constants_of_the_batch_are_repeated(batch: int) -> None:
    net = Net()
    x = net.normal("x", batch, 3, 4)
    first = net.constant(np.full((batch, 1, 4), 0.5, np.float32))
    net.output(net("Concat", first, x, axis=1))
    check_samples(net.case())


def test_constants_that_are_nodes_are_repeated() -> None:
    net = Net()
    x = net.normal("x", 1, 3)
    first = net("Constant", value=numpy_helper.from_array(np.full((1, 2), 0.5, np.float32)))
    net.output(net("Concat", first, x, axis=1))
    check_samples(net.case())


def test_a_batch_that_a_reshape_joins_with_another_axis_is_followed() -> None:
    net = Net()
    x = net("Reshape", net.normal("x", 2, 3, 4), net.ints(6, 4))
    x = net("MatMul", x, net.weight(4, 5))
    net.output(net("Reshape", x, net.ints(2, 3, 5)))
    check_samples(net.case())


def test_sizes_of_a_joined_batch_are_in_proportion() -> None:
    net = Net()
    x = net("Reshape", net.normal("x", 2, 3, 4, 4), net.ints(6, 1, 4, 4))
    x = net("Resize", x, "", "", net.ints(6, 1, 8, 8), mode="nearest")
    net.output(net("Reshape", x, net.ints(2, 3, 8, 8)))
    check_samples(net.case())


def test_names_that_are_taken_are_not_given_again() -> None:
    net = Net()
    x = net("Reshape", net.normal("batch.0", 2, 3, 4), net.ints(2, 12))
    net.output(net("Relu", x))
    check_samples(net.case())


def test_a_shape_within_a_function_is_refused() -> None:
    inner = helper.make_function(
        "own", "Flat", ["x"], ["y"],
        [helper.make_node("Constant", [], ["s"], value_ints=[2, 12]),
         helper.make_node("Reshape", ["x", "s"], ["y"])],
        [helper.make_opsetid("", 20)],
    )  # fmt: skip
    net = Net()
    net.output(net("Flat", net.normal("x", 2, 3, 4), domain="own"))
    graph = net.graph()
    result = helper.make_tensor_value_info("flat0", onnx.TensorProto.FLOAT, [2, 12])
    graph.output[0].CopyFrom(result)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[inner], ir_version=9)
    with pytest.raises(FixedBatchError, match="within a function of the model"):
        opened(model.SerializeToString())


def test_a_refused_file_is_as_it_was() -> None:
    net = Net()
    net.output(net("Softmax", net.normal("x", 2, 4), axis=0))
    file = open_model_bytes(net.case().model)
    with pytest.raises(FixedBatchError):
        file.with_open_batch({})
    assert file.declared == {"x": (2, 4)}
    assert file.graph({}).value("softmax0").shape == (2, 4)


def test_sizes_of_some_axes_stay_as_they_are() -> None:
    net = Net(opset=20)
    x = net.normal("x", 2, 3, 4, 4)
    net.output(net("Resize", x, "", "", net.ints(8, 6), axes=[2, 3], mode="nearest"))
    check_samples(net.case())


def test_a_constant_as_long_as_a_joined_axis_is_refused() -> None:
    net = Net()
    x = net("Reshape", net.normal("x", 2, 3, 4), net.ints(6, 4))
    net.output(net("Concat", net.constant(np.ones((6, 1), np.float32)), x, axis=1))
    with pytest.raises(FixedBatchError, match="axis 0 is not as long as the batch"):
        opened(net.case().model)
