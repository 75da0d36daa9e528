"""Rewrites scaled integer products to products of dequantized real numbers."""

from dataclasses import dataclass, replace

from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import DType, Graph, Node, Value, element_count

REAL = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
OPSET = 13
ONNX_INT32 = 6


def recognize_quantized(graph: Graph) -> Graph:
    """Replace MatMulInteger or ConvInteger, Cast and Mul by the operator on real numbers.

    One operand is dequantized by a scale and a zero point that the run computes, the constant
    weights by theirs; the Mul multiplied by the product of both scales.
    """
    search = _Search(graph)
    return rebuilt(graph, [n for node in graph.nodes for n in search.joined(node)],
                   values=search.values)  # fmt: skip


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
        tensor, before = self._dequantized(found.tensor)
        weights = f"{found.product.name}.weights"
        self._type(weights, DType.FLOAT32, found.weights.integers)
        return [*before, *found.nodes(tensor, weights)]

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
        self.values[name] = Value(name, dtype, self.graph.value(like).shape)

    def _scaled(self, node: Node) -> "_Scaled | None":
        if node.operator not in REAL or node.domain:
            return None
        cast = sole_reader(self.counts, self.readers, node.outputs[0])
        if cast is None or cast.operator != "Cast" or cast.domain:
            return None
        scaling = sole_reader(self.counts, self.readers, cast.outputs[0])
        if scaling is None or scaling.operator != "Mul" or scaling.domain:
            return None
        factor = scaling.inputs[1 if scaling.inputs[0] == cast.outputs[0] else 0]
        sums, real = (self.graph.value(part.outputs[0]) for part in (node, scaling))
        if real.dtype is not DType.FLOAT32 or not real.is_static or real.shape != sums.shape:
            return None
        scales = self.makers.get(factor)
        if scales is None or scales.operator != "Mul" or scales.domain:
            return None
        return next(
            (
                found
                for pair in (scales.inputs, scales.inputs[::-1])
                if (found := self._of_scales(node, scaling, *pair)) is not None
            ),
            None,
        )

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


@dataclass(frozen=True, slots=True)
class _Scaled:
    """Product of integers, and the multiplication of its sums by scales."""

    product: Node
    scaling: Node
    tensor: _Operand
    weights: _Operand
    axis: int

    def nodes(self, tensor: str, weights: str) -> list[Node]:
        """Make the dequantized weights and the product with them."""
        operand = self.weights
        inputs = tuple(part for part in (operand.integers, operand.scale, operand.zero) if part)
        axis = {"axis": self.axis}
        return [
            Node(weights, "DequantizeLinear", inputs, (weights,), axis, version=OPSET),
            replace(self.product, operator=REAL[self.product.operator],
                    inputs=(tensor, weights), outputs=self.scaling.outputs, version=OPSET),
        ]  # fmt: skip
