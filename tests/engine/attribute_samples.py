"""Nodes with attributes that ONNX's node suite leaves at their defaults."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tightship.graph.operators import rows

Inputs = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A node of an opset, with its operands; None where one is absent."""

    operator: str
    version: int
    inputs: Inputs
    attributes: dict[str, Any]
    outputs: int = 1

    @property
    def feeds(self) -> dict[str, Any]:
        """Arrays by input."""
        return {f"x{i}": np.asarray(each) for i, each in enumerate(self.inputs) if each is not None}

    def model(self) -> bytes:
        """A model of the node."""
        feeds = self.feeds
        names = [f"x{i}" if f"x{i}" in feeds else "" for i in range(len(self.inputs))]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.operator, names, outputs, "node", **self.attributes)
        types = {name: helper.np_dtype_to_tensor_dtype(each.dtype) for name, each in feeds.items()}
        graph = helper.make_graph(
            [node], "g",
            [helper.make_tensor_value_info(n, types[n], each.shape) for n, each in feeds.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
        )  # fmt: skip
        opsets = [helper.make_opsetid("", self.version)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


_random = np.random.default_rng(0)


def real(*shape: int) -> Any:
    return _random.standard_normal(shape).astype(np.float32)


def small(*shape: int) -> Any:
    return _random.integers(0, 100, shape).astype(np.uint8)


def recurrent(operator: str, gates: int, **attributes: Any) -> Sample:
    """A layer of five units over sequences of three lengths."""
    both = attributes.get("direction") == "bidirectional"
    ways, units = 2 if both else 1, 5
    rows = gates * units
    operands = (
        real(6, 3, 4), real(ways, rows, 4), real(ways, rows, units), real(ways, 2 * rows),
        np.array([6, 2, 4], np.int32), real(ways, 3, units),
    )  # fmt: skip
    return Sample(operator, 22, operands, {"hidden_size": units, **attributes}, 2)


_spread = {"broadcast": 1, "axis": 1}
_cells = {
    "GRU": (3, ["HardSigmoid", "LeakyRelu"], [0.3, 0.2]),
    "LSTM": (4, ["HardSigmoid", "LeakyRelu", "ThresholdedRelu"], [0.3, 0.2, 0.4]),
    "RNN": (1, ["LeakyRelu"], [0.3]),
}
_window = {"group": 2, "dilations": [2, 1], "strides": [1, 2], "pads": [1, 2, 0, 1]}
_padded = {"auto_pad": "SAME_LOWER", "strides": [2, 2]}
_image, _filters = small(1, 4, 8, 8), small(6, 2, 3, 3)
_quantized = (
    _image, np.float32(0.1), np.uint8(7), _filters, np.float32(0.2), np.uint8(9), np.float32(3),
    np.uint8(3), np.arange(6, dtype=np.int32),
)  # fmt: skip
_reductions = [name for name in rows() if name.startswith("Reduce")]
_scale = {"to": TensorProto.FLOAT8E8M0, "round_mode": "down"}
_norm = {"kernel_shape": [3, 3], "dilations": [2, 2], "p": 1}
_wider = {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "linear"}
_cache = real(2, 4, 3, 5), real(2, 2, 3, 5), np.array([1, 2])
_heads = (real(1, 2, 4, 8), real(1, 2, 4, 8), real(1, 2, 4, 8))

SAMPLES = [
    *[Sample(name, 6, (real(2, 3, 4), real(3)), _spread) for name in ["Add", "Sub", "Mul", "Div"]],
    Sample("Pow", 1, (np.abs(real(2, 3, 4)), real(3)), _spread),
    *[Sample(name, 1, (real(2, 3, 4), real(3)), _spread) for name in ("Greater", "Less")],
    Sample("Equal", 1, (np.ones((2, 3, 4), np.int32), np.arange(3, dtype=np.int32)), _spread),
    *[
        Sample(name, 1, (real(2, 3, 4) > 0, real(3) > 0), _spread)
        for name in ("And", "Or", "Xor")
    ],
    Sample("Attention", 24, _heads, {"softmax_precision": TensorProto.DOUBLE}),
    Sample("Attention", 24, _heads, {"scale": 0.3, "is_causal": 1}),
    Sample("Cast", 24, (np.abs(real(3, 4)), ), _scale),
    Sample("Clip", 6, (real(3, 4),), {"min": -0.3, "max": 0.5}),
    Sample("Conv", 11, (real(1, 4, 8, 8), real(6, 2, 3, 3), real(6)), _window),
    Sample("ConvTranspose", 11, (real(1, 4, 8, 8), real(4, 2, 3, 3), real(4)), _window),
    Sample("ConvInteger", 10, (_image, _filters), _window),
    Sample("ConvInteger", 10, (_image, small(6, 4, 3, 3)), _padded),
    Sample("QLinearConv", 10, _quantized, _window),
    Sample("QLinearConv", 10, (*_quantized[:3], small(6, 4, 3, 3), *_quantized[4:]), _padded),
    Sample("LpPool", 22, (real(1, 2, 7, 7),), _norm),
    Sample("Pad", 2, (real(2, 3),), {"pads": [1, 0, 2, 1], "value": 0.5}),
    Sample("Pad", 1, (real(2, 3),), {"paddings": [1, 0, 2, 1], "value": 0.5}),
    Sample("QuantizeLinear", 23, (real(3, 4) * 99, np.float32(0.5)),
           {"output_dtype": TensorProto.FLOAT8E4M3FN, "saturate": 0}),
    Sample("QuantizeLinear", 23, (real(3, 4) * 99, np.float32(0.3)),
           {"precision": TensorProto.FLOAT16}),
    *[Sample(name, 11, (np.abs(real(2, 3, 4)),), {"axes": [0, 2]}) for name in _reductions],
    *[
        Sample(name, 18, (np.abs(real(2, 3, 4)),), {"noop_with_empty_axes": 1})
        for name in _reductions
    ],
    Sample("Slice", 1, (real(4, 5, 6),), {"starts": [1, -3], "ends": [3, 100], "axes": [0, 2]}),
    Sample("Squeeze", 1, (real(1, 3, 1, 2),), {"axes": [0, 2]}),
    Sample("Unsqueeze", 1, (real(3, 2),), {"axes": [0, 2]}),
    Sample("STFT", 17, (real(1, 32, 1), np.int64(8), real(16)), {"onesided": 0}),
    Sample("Swish", 24, (real(3, 4),), {"alpha": 0.3}),
    Sample("TensorScatter", 24, _cache, {"axis": 1}),
    Sample("TopK", 11, (real(3, 6), np.array([3])), {"axis": 1, "largest": 0}, 2),
    Sample("Upsample", 7, (real(1, 2, 3, 4),), _wider),
    *[
        sample
        for name, (gates, activations, alpha) in _cells.items()
        for sample in (
            recurrent(name, gates, clip=0.2),
            recurrent(name, gates, direction="reverse"),
            recurrent(name, gates, direction="bidirectional"),
            recurrent(name, gates, activations=activations, activation_alpha=alpha,
                      activation_beta=[0.4]),
        )
    ],
    recurrent("GRU", 3, linear_before_reset=1),
    recurrent("LSTM", 4, input_forget=1),
    Sample("RoiAlign", 16, (real(1, 2, 5, 5), np.float32([[1, 2, 9, 7]]), np.array([0])),
           {"spatial_scale": 0.5, "output_height": 2}),
]  # fmt: skip
