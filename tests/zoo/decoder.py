"""A small Llama with caches, as the builder of onnxruntime-genai writes it: weights in blocks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tests.zoo.net import Case

OPSET, IR_VERSION = 21, 10
Dims = list[int | str]


@dataclass(frozen=True, slots=True)
class Quantized:
    """Form of the weights; a level of 4 rounds activations to 8 bits."""

    bits: int = 4
    block: int = 32
    level: int = 0
    has_zeros: bool = False


@dataclass(frozen=True, slots=True)
class Size:
    """Layers, width, heads of queries and of keys, width inside, and vocabulary."""

    layers: int = 4
    width: int = 512
    heads: int = 8
    groups: int = 8
    inside: int = 1536
    vocabulary: int = 3200
    positions: int = 256

    @property
    def head(self) -> int:
        return self.width // self.heads


SMALL = Size(layers=4, width=128, heads=4, groups=2, inside=192, vocabulary=320)


def decoder(
    size: Size = Size(),
    stored: Quantized = Quantized(),
    *,
    rows: int = 1,
    past: int = 8,
    is_tied: bool = False,
) -> Case:
    """Logits of `rows` tokens after `past` others; tied heads share the table's integers."""
    return _Writer(size, stored, is_tied=is_tied).case(rows, past)


class _Writer:
    def __init__(self, size: Size, stored: Quantized, *, is_tied: bool) -> None:
        self.size, self.stored, self.is_tied = size, stored, is_tied
        self.random = np.random.default_rng(60)
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def node(self, operator: str, *inputs: str, outputs: Any = None, **attributes: Any) -> str:
        domain = "" if operator in ONNX else "com.microsoft"
        name = f"{operator}_{len(self.nodes)}"
        outputs = outputs or [f"{name}.out"]
        made = helper.make_node(operator, inputs, outputs, name, domain=domain, **attributes)
        self.nodes.append(made)
        return str(outputs[0])

    def tensor(self, name: str, value: Any) -> str:
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def blocks(self, name: str, rows: int, depth: int) -> dict[str, str]:
        """Write random integers, with scales that keep the sums of a product near one."""
        bits, block = self.stored.bits, self.stored.block
        count = -(-depth // block)
        raw = self.random.integers(0, 256, (rows, count, block * bits // 8), np.uint8)
        step = (1 << bits) * 0.29 * np.sqrt(depth)
        scales = (1 + self.random.random((rows, count))) / step
        found = {
            "B": self.tensor(f"{name}.weight", raw),
            "scales": self.tensor(f"{name}.scales", scales.astype(np.float32)),
        }
        if self.stored.has_zeros:
            zeros = self.random.integers(0, 256, (rows, -(-count * bits // 8)), np.uint8)
            found["zeros"] = self.tensor(f"{name}.zeros", zeros)
        return found

    def product(self, x: str, weights: dict[str, str], rows: int, depth: int) -> str:
        stored = self.stored
        return self.node(
            "MatMulNBits", x, *weights.values(), K=depth, N=rows, bits=stored.bits,
            block_size=stored.block, accuracy_level=stored.level,
        )  # fmt: skip

    def case(self, rows: int, past: int) -> Case:
        size, stored = self.size, self.stored
        mask = self.node("ReduceSum", "attention_mask", self.tensor("last", np.array([1])),
                         keepdims=0)  # fmt: skip
        seen = self.node("Sub", mask, self.tensor("one", np.array(1)))
        seen = self.node("Cast", seen, to=TensorProto.INT32)
        total = self.node("Shape", "attention_mask", start=1, end=2)
        total = self.node("Reshape", total, self.tensor("scalar", np.zeros(0, np.int64)))
        total = self.node("Cast", total, to=TensorProto.INT32)
        angles = np.arange(size.positions)[:, None] / 1e4 ** (
            np.arange(size.head // 2) / (size.head // 2)
        )
        tables = [self.tensor("cos", np.cos(angles).astype(np.float32)),
                  self.tensor("sin", np.sin(angles).astype(np.float32))]  # fmt: skip
        head = self.blocks("lm_head", size.vocabulary, size.width)
        if self.is_tied:
            shape = self.tensor("flat", np.array([size.vocabulary, -1]))
            table = {**head, "B": self.node("Reshape", head["B"], shape)}
            first, scales, *zeros = table.values()
            x = self.node("GatherBlockQuantized", first, "input_ids", scales, *zeros,
                          bits=stored.bits, block_size=stored.block)  # fmt: skip
        else:
            values = self.random.standard_normal((size.vocabulary, size.width))
            table_name = self.tensor("embedding", values.astype(np.float32))
            x = self.node("Gather", table_name, "input_ids")
        for layer in range(size.layers):
            x = self.layer(layer, x, (seen, total), tables)
        x = self.normalized("final", x)
        logits = self.product(x, head, size.vocabulary, size.width)
        self.node("Identity", logits, outputs=["logits"])
        return self._finished(rows, past)

    def layer(self, layer: int, x: str, lengths: tuple[str, str], tables: list[str]) -> str:
        size = self.size
        width, inner = size.width, size.groups * size.head
        normal = self.normalized(f"{layer}.first", x)
        q, k, v = (
            self.product(normal, self.blocks(f"{layer}.{name}", rows, width), rows, width)
            for name, rows in (("q", width), ("k", inner), ("v", inner))
        )
        names = [f"present.{layer}.key", f"present.{layer}.value"]
        mixed = self.node(
            "GroupQueryAttention", q, k, v, f"past_key_values.{layer}.key",
            f"past_key_values.{layer}.value", *lengths, *tables,
            outputs=[f"{layer}.mixed", *names], num_heads=size.heads, kv_num_heads=size.groups,
            do_rotary=1,
        )  # fmt: skip
        out = self.product(mixed, self.blocks(f"{layer}.o", width, width), width, width)
        x = self.node("Add", x, out)
        normal = self.normalized(f"{layer}.second", x)
        gate, up = (
            self.product(
                normal, self.blocks(f"{layer}.{name}", size.inside, width), size.inside, width
            )
            for name in ("gate", "up")
        )
        swish = self.node("Mul", gate, self.node("Sigmoid", gate))
        down = self.blocks(f"{layer}.down", width, size.inside)
        return self.node(
            "Add", x, self.product(self.node("Mul", swish, up), down, width, size.inside)
        )

    def normalized(self, name: str, x: str) -> str:
        weights = 1 + 0.1 * self.random.standard_normal(self.size.width)
        scale = self.tensor(f"{name}.norm", weights.astype(np.float32))
        return self.node("SimplifiedLayerNormalization", x, scale, epsilon=1e-5, axis=-1)

    def _finished(self, rows: int, past: int) -> Case:
        size = self.size
        ids = self.random.integers(0, size.vocabulary, (1, rows))
        feeds = {"input_ids": ids, "attention_mask": np.ones((1, past + rows), np.int64)}
        shapes: dict[str, Dims] = {
            "input_ids": ["batch_size", "sequence_length"],
            "attention_mask": ["batch_size", "total_sequence_length"],
        }
        outputs: dict[str, Dims] = {"logits": ["batch_size", "sequence_length", size.vocabulary]}
        for layer in range(size.layers):
            for kind in ("key", "value"):
                cache = self.random.standard_normal((1, size.groups, past, size.head))
                name = f"past_key_values.{layer}.{kind}"
                feeds[name] = cache.astype(np.float32)
                shapes[name] = ["batch_size", size.groups, "past_sequence_length", size.head]
                outputs[f"present.{layer}.{kind}"] = [
                    "batch_size", size.groups, "total_sequence_length", size.head
                ]  # fmt: skip
        graph = helper.make_graph(
            self.nodes, "decoder",
            [_info(n, helper.np_dtype_to_tensor_dtype(feeds[n].dtype), d)
             for n, d in shapes.items()],
            [_info(name, TensorProto.FLOAT, dims) for name, dims in outputs.items()],
            self.tensors,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return Case(model.SerializeToString(), feeds)


def _info(name: str, element: int, dims: Dims) -> ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, element, dims)


ONNX = frozenset(
    {"Add", "Cast", "Gather", "Identity", "Mul", "ReduceSum", "Reshape", "Shape", "Sigmoid",
     "SimplifiedLayerNormalization", "Sub"}
)  # fmt: skip
"""Operators of ONNX's own domain, as ONNX Runtime counts them."""
