"""The ONNX decoder that a GGUF file stands for: tokens and caches in, logits and caches out.

Inputs and outputs have the names and shapes that onnxruntime-genai's builder gives them, so that
plans, sessions and loops treat the decoder as any other.
"""

from collections.abc import Iterable

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper

from tightship.frontend.gguf.equal_layers import few_layers, stand_ins
from tightship.frontend.gguf.layer import Angles, LayerWriter, Positions
from tightship.frontend.gguf.nodes import Nodes
from tightship.frontend.gguf.parameters import Parameters
from tightship.frontend.gguf.rotary import Rotary
from tightship.frontend.gguf.weights import Weights
from tightship.graph.few_layers import FewLayers

OPSETS = {"": 23, "com.microsoft": 1, "tightship": 1}
IR_VERSION = 10
TABLE, HEAD = "token_embd.weight", "output.weight"
FACTORS = "rope_freqs.weight"


def decoder_of(
    weights: Weights, parameters: Parameters, *, once: bool = False
) -> tuple[ModelProto, FewLayers]:
    """Write the decoder, whose constants stay in the file.

    Args:
        weights: Tensors of the file.
        parameters: Sizes of the decoder.
        once: Whether to write few of equal layers.

    Returns:
        The decoder, and what tells the layers that were left out.

    Raises:
        FormatError: A tensor is missing, or has another shape than the metadata says.
        GraphError: A tensor has a type or a name that is not supported.
    """
    nodes = weights.nodes
    rows = weights.rows(TABLE)
    table = weights.matrix(TABLE, rows, parameters.width)
    writer = LayerWriter(nodes, weights, parameters, _positions(weights, parameters))
    x = nodes("Gather", table, "input_ids", axis=0)
    if parameters.embedding_scale != 1.0:
        x = nodes("Mul", x, nodes.numbers(parameters.embedding_scale, np.float32))
    begins, ends = x, dict[int, str]()
    stands = stand_ins(weights, parameters) if once else tuple(range(parameters.layers))
    for index, stand in enumerate(stands):
        if stand == index:
            x = ends[index] = writer.write(index, x)
        else:
            weights.leave_out(f"blk.{index}.")
    nodes.begin("head.")
    x = writer.normalized(x, "", "output_norm")
    head = HEAD if weights.has(HEAD) else TABLE
    x = weights.product(x, head, rows, parameters.width)
    nodes.many("Identity", ["logits"], _capped(nodes, x, parameters.cap))
    weights.refuse_unread(parameters.kind.name)
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    graph = _graph(nodes, parameters, rows, ends)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    return model, few_layers(weights, stands, begins, ends)


def _graph(nodes: Nodes, parameters: Parameters, rows: int, layers: Iterable[int]) -> GraphProto:
    ids: list[int | str] = ["batch_size", "sequence_length"]
    past, total = (
        ["batch_size", parameters.shared, length, parameters.length]
        for length in ("past_sequence_length", "total_sequence_length")
    )
    every, caches = (
        [f"{layer}.{kind}" for layer in some for kind in ("key", "value")]
        for some in (range(parameters.layers), layers)
    )
    inputs = [
        _info("input_ids", TensorProto.INT64, ids),
        _info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]),
        *(_info(f"past_key_values.{cache}", TensorProto.FLOAT, past) for cache in every),
    ]
    outputs = [
        _info("logits", TensorProto.FLOAT, [*ids, rows]),
        *(_info(f"present.{cache}", TensorProto.FLOAT, total) for cache in caches),
    ]
    return helper.make_graph(nodes.nodes, parameters.kind.name, inputs, outputs, nodes.tensors)


def _capped(nodes: Nodes, x: str, cap: float) -> str:
    """Bound logits smoothly by a magnitude, unless it is 0."""
    if not cap:
        return x
    number = nodes.numbers(cap, np.float32)
    return nodes("Mul", nodes("Tanh", nodes("Div", x, number)), number)


def _positions(weights: Weights, parameters: Parameters) -> Positions:
    """Write the numbers of tokens, and cosines and sines of the new tokens' angles."""
    nodes = weights.nodes
    seen = nodes("ReduceSum", "attention_mask", nodes.numbers([1]), keepdims=0)
    steps = nodes("Squeeze", nodes("Shape", "input_ids", start=1, end=2))
    total = nodes("Squeeze", nodes("Shape", "attention_mask", start=1, end=2))
    starts = nodes("Max", nodes("Sub", seen, steps), nodes.numbers(0))
    index = nodes("Range", nodes.numbers(0), steps, nodes.numbers(1))
    places = nodes("Add", nodes("Unsqueeze", starts, nodes.numbers([1])), index)
    real = nodes("Cast", nodes("Unsqueeze", places, nodes.numbers([2])), to=TensorProto.FLOAT)
    last = nodes("Sub", seen, nodes.numbers(1))
    rotary, in_windows = parameters.rotary, parameters.windows.rotary
    angles = _angles(weights, rotary, real, FACTORS)
    return Positions(
        nodes("Cast", last, to=TensorProto.INT32),
        nodes("Cast", total, to=TensorProto.INT32),
        angles,
        angles if in_windows == rotary else _angles(weights, in_windows, real, ""),
    )


def _angles(weights: Weights, rotary: Rotary, places: str, factors: str) -> Angles:
    """Write cosines and sines of angles; frequencies are divided by a tensor, if it is there."""
    nodes = weights.nodes
    frequencies = nodes.numbers(rotary.frequencies, np.float32)
    if weights.has(factors):
        divisors = weights.vector(factors, rotary.length // 2)
        frequencies = nodes("Div", frequencies, divisors)
    angles = nodes("Mul", places, frequencies)
    return nodes("Cos", angles), nodes("Sin", angles)


def _info(name: str, element: int, dims: list[int | str]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element, dims)
