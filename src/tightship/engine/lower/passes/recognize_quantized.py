"""Rewrites scaled integer products to products of dequantized real numbers."""

from dataclasses import dataclass, replace

import numpy as np

from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import Constant, DType, Fill, Graph, Inline, Node, Value, element_count

REAL = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
OPSET = 13
ONNX_FLOAT, ONNX_INT32 = 1, 6


def recognize_quantized(graph: Graph) -> Graph:
    """Replace MatMulInteger or ConvInteger, Cast and Mul by the operator on real numbers.

    One operand is dequantized by a scale and a zero point that the run computes, the constant
    weights by theirs; the Mul multiplied by the product of both scales. A bias that is added to the
    sums as a whole number is scaled by itself, and added behind.
    """
    search = _Search(graph)
    nodes = [n for node in graph.nodes for n in search.joined(node)]
    constants = {k: c for k, c in search.constants.items() if k not in graph.constants}
    return rebuilt(graph, nodes, constants=constants, values=search.values)


@dataclass(frozen=True, slots=True)
class _Operand:
    """Integers, scale and zero point by name; an empty name means no zero point."""

    integers: str
    scale: str
    zero: str


class _Search:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values: dict[str, Value] = {}
        self.constants: dict[str, Constant] = dict(graph.constants)
        self.real: dict[_Operand, str] = {}
        self.counts = graph.uses()
        self.readers = readers_of(graph)
        self.makers = {name: node for node in graph.nodes for name in node.writes}
        self.products = {}
        for node in graph.nodes:
            found = self._scaled(node)
            if found is not None:
                self.products[found.scaling.name] = found

    def joined(self, node: Node) -> list[Node]:
        """Replace the multiplication by scales; return other nodes unchanged."""
        found = self.products.get(node.name)
        if found is None:
            return [node]
        tensor, nodes = self._dequantized(found.tensor)
        terms = [*self._rest(found, tensor, nodes), *self._bias_of(found, nodes)]
        name = found.product.name
        weights = self._weights(found, f"{name}.weights", nodes, found.weights)
        sums = [f"{name}.sum{index}" for index in range(len(terms))]
        names = [*sums, found.scaling.outputs[0]]
        for each in sums:
            self._type(each, DType.FLOAT32, names[-1])
        nodes.append(found.real(tensor, weights, names[0]))
        for before, term, after in zip(sums, terms, names[1:], strict=True):
            nodes.append(Node(after, "Add", (before, term), (after,), version=OPSET))
        return nodes

    def _weights(self, found: "_Scaled", name: str, nodes: list[Node], operand: _Operand) -> str:
        """Dequantize weights under a name."""
        inputs = tuple(part for part in (operand.integers, operand.scale, operand.zero) if part)
        nodes.append(
            Node(name, "DequantizeLinear", inputs, (name,), {"axis": found.axis}, version=OPSET)
        )
        self._type(name, DType.FLOAT32, operand.integers)
        return name

    def _bias_of(self, found: "_Scaled", nodes: list[Node]) -> list[str]:
        """Scale the bias, if there is one; return its name."""
        if not found.bias:
            return []
        real = f"{found.product.name}.bias"
        for name in (f"{real}.whole", real):
            self._type(name, DType.FLOAT32, found.bias)
        to = {"to": ONNX_FLOAT}
        nodes += [
            Node(f"{real}.whole", "Cast", (found.bias,), (f"{real}.whole",), to, version=OPSET),
            Node(real, "Mul", (f"{real}.whole", found.factor), (real,), version=OPSET),
        ]
        return [real]

    def _rest(self, found: "_Scaled", tensor: str, nodes: list[Node]) -> list[str]:
        """Take a zero point that integer kernels lack out of the weights of a convolution.

        What it adds to each result is the same for all channels: a convolution with equal weights.
        """
        given = found.weights
        if found.axis or found.product.attributes.get("group", 1) != 1:
            return []
        integers = self.constants[given.integers]
        middle = 128 if integers.dtype is DType.UINT8 else 0
        zero = int(self.constants[given.zero].array().reshape(())) if given.zero else 0
        if zero == middle or not -128 <= middle - zero <= 127:
            return []
        name = f"{found.product.name}.rest"
        lengths = (1, *integers.shape[1:])
        self.constants[f"{name}.integers"] = Fill(np.full((), middle - zero, np.int8), lengths)
        self.constants[f"{name}.zero"] = Inline(np.full((), middle, integers.dtype.numpy))
        for each in ("integers", "zero"):
            constant = self.constants[f"{name}.{each}"]
            self.values[f"{name}.{each}"] = Value(f"{name}.{each}", constant.dtype, constant.shape)
        equal = _Operand(f"{name}.integers", given.scale, "")
        weights = self._weights(found, f"{name}.weights", nodes, equal)
        found.weights = replace(given, zero=f"{name}.zero")
        images, _, *pixels = self.graph.value(found.scaling.outputs[0]).static_shape
        self.values[name] = Value(name, DType.FLOAT32, (images, 1, *pixels))
        nodes.append(found.real(tensor, weights, name))
        return [name]

    def _dequantized(self, operand: _Operand) -> tuple[str, list[Node]]:
        """Return a tensor's real numbers, and the nodes that make them on first use."""
        if operand in self.real:
            return self.real[operand], []
        name = self.real[operand] = f"{operand.integers}.real{len(self.real)}"
        wide = f"{name}.zero"
        self._type(name, DType.FLOAT32, operand.integers)
        self._type(wide, DType.INT32, operand.zero)
        inputs = (operand.integers, operand.scale, operand.zero, wide)
        return name, [
            Node(wide, "Cast", (operand.zero,), (wide,), {"to": ONNX_INT32}, version=OPSET),
            Node(name, "Dequantize", inputs, (name,), domain="tightship"),
        ]

    def _type(self, name: str, dtype: DType, like: str) -> None:
        self.values[name] = Value(
            name, dtype, (self.values.get(like) or self.graph.value(like)).shape
        )

    def _scaled(self, node: Node) -> "_Scaled | None":
        if node.operator not in REAL or node.domain:
            return None
        cast, bias = self._reader(node), ""
        if cast is not None and cast.operator == "Add" and not cast.domain:
            bias = self._bias(node, cast)
            cast = self._reader(cast) if bias else None
        if cast is None or cast.operator != "Cast" or cast.domain:
            return None
        scaling = self._reader(cast)
        if scaling is None or scaling.operator != "Mul" or scaling.domain:
            return None
        factor = scaling.inputs[1 if scaling.inputs[0] == cast.outputs[0] else 0]
        sums, real = (self.graph.value(part.outputs[0]) for part in (node, scaling))
        if real.dtype is not DType.FLOAT32 or not real.is_static or real.shape != sums.shape:
            return None
        scales = self.makers.get(factor)
        if scales is None or scales.operator != "Mul" or scales.domain:
            return None
        found = next(
            (
                found
                for pair in (scales.inputs, scales.inputs[::-1])
                if (found := self._of_scales(node, scaling, *pair)) is not None
            ),
            None,
        )
        if found is not None:
            found.bias, found.factor = bias, factor
        return found

    def _reader(self, node: Node) -> Node | None:
        """Return the only node that reads a node's result; None if there are others."""
        return sole_reader(self.counts, self.readers, node.outputs[0])

    def _bias(self, node: Node, addition: Node) -> str:
        """Return the operand that is added to a convolution's sums by channel; empty for none."""
        sums = node.outputs[0]
        bias = addition.inputs[1 if addition.inputs[0] == sums else 0]
        shapes = [self.graph.value(name).shape for name in (bias, sums, addition.outputs[0])]
        if node.operator != "ConvInteger" or None in shapes or shapes[1] != shapes[2]:
            return ""
        lengths, whole = shapes[0] or (), shapes[1] or ()
        by_channel = (1, *whole[1:2], *[1] * (len(whole) - 2))
        return bias if lengths == by_channel else ""

    def _of_scales(self, node: Node, scaling: Node, left: str, right: str) -> "_Scaled | None":
        zeros = (*node.inputs[2:], "", "")[:2]
        tensor = _Operand(node.inputs[0], left, zeros[0])
        weights = _Operand(node.inputs[1], right, zeros[1])
        axis = 0 if node.operator == "ConvInteger" else 1
        if not self._is_tensor(tensor) or not self._are_weights(weights, axis):
            return None
        return _Scaled(node, scaling, tensor, weights, axis)

    def _is_tensor(self, operand: _Operand) -> bool:
        """Check for one float32 scale and one zero point, computed or constant."""
        value = self.graph.value
        parameters = [value(name) for name in (operand.scale, operand.zero) if name]
        return (
            bool(operand.zero)
            and value(operand.scale).dtype is DType.FLOAT32
            and value(operand.integers).dtype in NARROW
            and value(operand.integers).is_static
            and all(p.is_static and element_count(p.static_shape) == 1 for p in parameters)
        )

    def _are_weights(self, operand: _Operand, axis: int) -> bool:
        """Check for constants with a scale for all or for each output."""
        constants = self.graph.constants
        integers, scale = constants.get(operand.integers), constants.get(operand.scale)
        zero = constants.get(operand.zero) if operand.zero else None
        if integers is None or scale is None or (operand.zero and zero is None):
            return False
        count = element_count(scale.shape)
        return (
            integers.dtype in NARROW
            and scale.dtype is DType.FLOAT32
            and (axis == 0 or len(integers.shape) == 2)
            and (count == 1 or (axis == 1 and scale.shape == integers.shape[1:]))
            and (zero is None or element_count(zero.shape) == count)
        )


@dataclass(slots=True)
class _Scaled:
    """Product of integers, and the multiplication of its sums by scales."""

    product: Node
    scaling: Node
    tensor: _Operand
    weights: _Operand
    axis: int
    bias: str = ""
    """Whole numbers that are added to the sums; empty for none."""
    factor: str = ""
    """Product of both scales."""

    def real(self, tensor: str, weights: str, name: str) -> Node:
        """Make the operator on real numbers that writes `name`."""
        return replace(self.product, name=name, operator=REAL[self.product.operator],
                       inputs=(tensor, weights), outputs=(name,), version=OPSET)  # fmt: skip
