"""Rewrites products into forms that the matmul primitive accepts.

Gemm with alpha, beta, a transposed left or a right that is no constant
    transposes, MatMul, Mul, Add; one of a transposed left alone stays
Gemm between two reshapes that only flatten its rows
    MatMul and Add of the value before, so that what follows can join it
MatMul of a vector, or of stacks of different ranks
    MatMul of operands of one rank
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Constant, DType, Graph, Inline, Node, Value
from tightship.graph.symbolic import SymbolicConstant


def expand_product(graph: Graph) -> Graph:
    """Replace every Gemm and MatMul of one of the forms above."""
    writer = _Writer(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.operator not in ("Gemm", "MatMul") or node.domain or not _is_float(graph, node):
            nodes.append(node)
        elif node.operator == "MatMul":
            nodes.extend(writer.of_one_rank(node))
        elif not _is_plain(graph, node) and not _is_of_transposed(graph, node):
            nodes.extend(writer.decomposed(node))
        else:
            nodes.append(node)
    if nodes == list(graph.nodes):
        return graph
    return rebuilt(graph, nodes, constants=writer.constants, values=writer.values)


def _is_float(graph: Graph, node: Node) -> bool:
    return not node.fused and all(
        graph.value(name).is_static
        and graph.value(name).dtype is DType.FLOAT32
        and 0 not in graph.value(name).static_shape
        for name in (*node.inputs, *node.outputs)
        if name
    )


def _is_plain(graph: Graph, node: Node) -> bool:
    """Whether a Gemm is rows times a constant, plus a constant row."""
    shape = graph.value(node.outputs[0]).static_shape
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    is_row = not bias or (
        bias in graph.constants
        and graph.value(bias).static_shape in ((shape[1],), (1, shape[1]))
        and _number(node, "beta", 1.0) == 1
    )
    return (
        is_row
        and _number(node, "alpha", 1.0) == 1
        and not node.attributes.get("transA", 0)
        and node.inputs[1] in graph.constants
    )


def _is_of_transposed(graph: Graph, node: Node) -> bool:
    """Whether a Gemm is a computed matrix, read transposed, times another, without a bias."""
    is_transposed = bool(node.attributes.get("transA", 0))
    return is_transposed and len(node.inputs) == 2 and node.inputs[0] not in graph.constants


def _number(node: Node, name: str, default: float) -> float:
    value = node.attributes.get(name, default)
    assert isinstance(value, float | int)
    return float(value)


@dataclass(slots=True)
class _Writer:
    """New nodes with their constants and values."""

    graph: Graph
    constants: dict[str, Constant] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def _value(self, name: str) -> Value:
        return self.values.get(name) or self.graph.value(name)

    def _made(self, name: str, shape: tuple[int, ...]) -> str:
        self.values[name] = Value(name, DType.FLOAT32, shape)
        return name

    def _constant(self, name: str, array: np.ndarray) -> str:
        self.constants[name] = Inline(array)
        return name

    def decomposed(self, gemm: Node) -> list[Node]:
        """Replace a Gemm by transposes, MatMul, Mul and Add."""
        target = gemm.outputs[0]
        shape = self._value(target).static_shape
        nodes: list[Node] = []
        operands = []
        for name, flag in zip(gemm.inputs, ("transA", "transB"), strict=False):
            operand = name
            if gemm.attributes.get(flag, 0):
                turned = self._value(name).static_shape[::-1]
                operand = self._made(f"{target}.{flag}", turned)
                nodes.append(Node(operand, "Transpose", (name,), (operand,), {"perm": (1, 0)},
                                  version=13))  # fmt: skip
            operands.append(operand)
        terms: list[tuple[str, tuple[str, ...]]] = [("MatMul", tuple(operands))]
        alpha, beta = _number(gemm, "alpha", 1.0), _number(gemm, "beta", 1.0)
        if alpha != 1:
            number = self._constant(f"{target}.alpha", np.array(alpha, np.float32))
            terms.append(("Mul", ("", number)))
        bias = gemm.inputs[2] if len(gemm.inputs) > 2 else ""
        if bias and beta != 1:
            number = self._constant(f"{target}.beta", np.array(beta, np.float32))
            scaled = self._made(f"{target}.bias", self._value(bias).static_shape)
            nodes.append(Node(scaled, "Mul", (bias, number), (scaled,), version=14))
            bias = scaled
        if bias:
            terms.append(("Add", ("", bias)))
        return nodes + self._chain(gemm.name, target, shape, terms)

    def _chain(
        self,
        name: str,
        target: str,
        shape: tuple[int, ...],
        terms: Sequence[tuple[str, tuple[str, ...]]],
    ) -> list[Node]:
        """Make nodes each of which reads the one before it as `""`; the last makes `target`."""
        nodes: list[Node] = []
        made = ""
        for index, (operator, inputs) in enumerate(terms):
            is_last = index == len(terms) - 1
            reads = tuple(each or made for each in inputs)
            made = target if is_last else self._made(f"{target}.{operator.lower()}", shape)
            nodes.append(Node(f"{name}.{operator.lower()}", operator, reads, (made,), version=13))
        return nodes

    def of_one_rank(self, product: Node) -> list[Node]:
        """Give a MatMul operands of one rank, unless the right one is a single matrix."""
        left, right = (self._value(name).static_shape for name in product.inputs)
        if len(left) == len(right) >= 2 or (len(right) == 2 and len(left) > 2):
            return [product]
        target = product.outputs[0]
        wide_left = (1, *left) if len(left) == 1 else left
        wide_right = (*right, 1) if len(right) == 1 else right
        rank = max(len(wide_left), len(wide_right))
        if len(wide_right) > 2:
            wide_left = (1,) * (rank - len(wide_left)) + wide_left
            wide_right = (1,) * (rank - len(wide_right)) + wide_right
        nodes: list[Node] = []
        operands = []
        for name, shape, side in zip(
            product.inputs, (wide_left, wide_right), ("left", "right"), strict=True
        ):
            operands.append(name if self._value(name).static_shape == shape else
                            self._reshaped(nodes, name, shape, f"{target}.{side}"))  # fmt: skip
        batch = wide_left[:-2]
        if len(wide_right) > 2:
            pairs = zip(batch, wide_right[:-2], strict=True)
            batch = tuple([right if left == 1 else left for left, right in pairs])
        shape = (*batch, wide_left[-2], wide_right[-1])
        if shape == self._value(target).static_shape:
            return [*nodes, Node(product.name, "MatMul", tuple(operands), (target,), version=13)]
        made = self._made(f"{target}.product", shape)
        nodes.append(Node(product.name, "MatMul", tuple(operands), (made,), version=13))
        self._reshaped(nodes, made, self._value(target).static_shape, target)
        return nodes

    def _reshaped(self, nodes: list[Node], name: str, shape: tuple[int, ...], target: str) -> str:
        if target not in self.graph.values:
            self._made(target, shape)
        sizes = f"{target}.shape"
        self.constants[sizes] = SymbolicConstant(DType.INT64, np.array(shape, object))
        nodes.append(Node(f"{target}.reshape", "Reshape", (name, sizes), (target,), version=13))
        return target
