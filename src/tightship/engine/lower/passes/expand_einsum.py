"""Rewrites an Einsum of two operands to a product of stacks of matrices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Constant, DType, Graph, Node, Value, element_count
from tightship.graph.symbolic import SymbolicConstant

OPSET = 13


def expand_einsum(graph: Graph) -> Graph:
    """Replace Einsum by transposes, MatMul and reshapes.

    Each letter must be in both operands and the result, in one operand and the result, or in both
    operands only. An Einsum that repeats a letter in an operand, or sums over a letter of one
    operand, is left.
    """
    writer = _Writer(graph)
    nodes = [each for node in graph.nodes for each in writer.spelled(node)]
    if nodes == list(graph.nodes):
        return graph
    return rebuilt(graph, nodes, constants=writer.constants, values=writer.values)


@dataclass(frozen=True, slots=True)
class _Product:
    """Letters of the operands and the result, by their part in the product."""

    left: str
    right: str
    result: str

    @property
    def stack(self) -> str:
        return "".join(c for c in self.result if c in self.left and c in self.right)

    @property
    def rows(self) -> str:
        return "".join(c for c in self.result if c not in self.right)

    @property
    def columns(self) -> str:
        return "".join(c for c in self.result if c not in self.left)

    @property
    def depth(self) -> str:
        return "".join(c for c in self.left if c in self.right and c not in self.result)


def parsed(equation: str) -> _Product | None:
    """Parse an equation; None if it is not a product of that form."""
    sources, arrow, result = equation.replace(" ", "").partition("->")
    left, comma, right = sources.partition(",")
    letters = left + right + result
    if not arrow or not comma or not letters.isalpha():
        return None
    if any(len(set(part)) != len(part) for part in (left, right, result)):
        return None
    product = _Product(left, right, result)
    summed = {c for c in left + right if c not in result}
    if not set(result) <= set(left + right) or summed != set(product.depth):
        return None
    return product


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants: dict[str, Constant] = {}
        self.values: dict[str, Value] = {}

    def spelled(self, node: Node) -> list[Node]:
        """Replace the node by its parts, in order; return other nodes unchanged."""
        product = self._product(node)
        if product is None:
            return [node]
        result = node.outputs[0]
        shapes = [self.graph.value(name).static_shape for name in node.inputs]
        size = {c: n for part, shape in zip((product.left, product.right), shapes, strict=True)
                for c, n in zip(part, shape, strict=True)}  # fmt: skip
        stack, rows, columns, depth = product.stack, product.rows, product.columns, product.depth
        nodes: list[Node] = []
        left = self._matrices(nodes, node.inputs[0], product.left, (stack, rows, depth), size)
        right = self._matrices(nodes, node.inputs[1], product.right, (stack, depth, columns), size)
        outer = [size[c] for c in stack]
        shape = (*outer, _length(rows, size), _length(columns, size))
        letters = stack + rows + columns
        order = [letters.index(c) for c in product.result]
        whole = [size[c] for c in letters]
        is_apart, is_ordered = len(rows) == len(columns) == 1, order == sorted(order)
        sums = result if is_apart and is_ordered else f"{result}.sums"
        self._add(nodes, "MatMul", (left, right), sums, shape)
        if not is_apart:
            sums = self._reshaped(nodes, sums, whole, result if is_ordered else f"{result}.apart")
        if not is_ordered:
            self._transposed(nodes, sums, order, [size[c] for c in product.result], result)
        return nodes

    def _product(self, node: Node) -> _Product | None:
        if node.operator != "Einsum" or node.domain or len(node.inputs) != 2:
            return None
        values = [self.graph.value(name) for name in (*node.inputs, *node.outputs)]
        if any(
            value.dtype is not DType.FLOAT32 or not value.is_static or 0 in value.static_shape
            for value in values
        ):
            return None
        found = parsed(str(node.attributes.get("equation", "")))
        if found is None:
            return None
        parts = zip((found.left, found.right, found.result), values, strict=True)
        lengths: dict[str, int] = {}
        for part, value in parts:
            if len(part) != len(value.static_shape):
                return None
            for letter, length in zip(part, value.static_shape, strict=True):
                if lengths.setdefault(letter, length) != length:
                    return None
        return found

    def _matrices(
        self, nodes: list[Node], name: str, letters: str, parts: tuple[str, str, str],
        size: dict[str, int],
    ) -> str:  # fmt: skip
        """Make an operand a stack of matrices of the second part by the third."""
        wanted = "".join(parts)
        label = f"{name}.{letters}.{wanted}.{len(parts[0])}.{len(parts[1])}"
        order = [letters.index(c) for c in wanted]
        if order != sorted(order):
            lengths = [size[c] for c in wanted]
            name = self._transposed(nodes, name, order, lengths, f"{label}.turned")
        shape = (*(size[c] for c in parts[0]), _length(parts[1], size), _length(parts[2], size))
        if len(parts[1]) == len(parts[2]) == 1:
            return name
        return self._reshaped(nodes, name, shape, f"{label}.matrices")

    def _transposed(
        self, nodes: list[Node], name: str, order: list[int], shape: list[int], target: str
    ) -> str:
        perm = {"perm": tuple(order)}
        if target not in self.values:
            self.values[target] = Value(target, DType.FLOAT32, tuple(shape))
            nodes.append(Node(target, "Transpose", (name,), (target,), perm, version=OPSET))
        return target

    def _reshaped(self, nodes: list[Node], name: str, shape: Sequence[int], target: str) -> str:
        sizes = f"{target}.shape"
        self.constants[sizes] = SymbolicConstant(DType.INT64, np.array(shape, object))
        return self._add(nodes, "Reshape", (name, sizes), target, tuple(shape))

    def _add(
        self, nodes: list[Node], operator: str, inputs: tuple[str, ...], target: str,
        shape: tuple[int, ...],
    ) -> str:  # fmt: skip
        if target not in self.values:
            self.values[target] = Value(target, DType.FLOAT32, shape)
            nodes.append(Node(target, operator, inputs, (target,), version=OPSET))
        return target


def _length(letters: str, size: dict[str, int]) -> int:
    return element_count(tuple(size[c] for c in letters))
