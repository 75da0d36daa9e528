"""Models are written a line an operator."""

import numpy as np
import onnx
from onnx import numpy_helper

from tightship.sample.network import PIECE, Network


def test_weights_drawn_in_pieces_are_those_drawn_at_once() -> None:
    net = Network(5)
    net.weight(3, PIECE // 2, fan_in=2)
    (tensor,) = net.graph().initializer
    want = np.random.default_rng(5).standard_normal((3, PIECE // 2)).astype(np.float32)
    np.testing.assert_array_equal(numpy_helper.to_array(tensor), want)


def test_open_lengths_keep_their_names() -> None:
    net = Network()
    x = net.normal("x", "batch", 4)
    net.output(net("Relu", x), *net.many("Split", 2, x, axis=1, num_outputs=2))
    model = net.model()
    onnx.checker.check_model(model, full_check=True)
    shapes = [
        [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in model.graph.output
    ]
    assert shapes == [["batch", 4], ["batch", 2], ["batch", 2]]
