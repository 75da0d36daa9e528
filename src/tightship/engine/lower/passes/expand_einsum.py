"""Rewrites an Einsum of two operands to a product of stacks of matrices."""

from dataclasses import dataclass

from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import DType, Graph, Node, element_count


def expand_einsum(graph: Graph) -> Graph:
    """Replace Einsum by transposes, MatMul and reshapes.

    Each letter must be in both operands and the result, in one operand and the result, or in both
    operands only. An Einsum that repeats a letter in an operand, or sums over a letter of one
    operand, is left.
    """
    writer = GraphWriter(graph)
    for node in graph.nodes:
        product = _product(graph, node)
        if product is None:
            writer.nodes.append(node)
        else:
            _expand(writer, node, product)
    return writer.written()


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


def _product(graph: Graph, node: Node) -> _Product | None:
    if node.operator != "Einsum" or node.domain or len(node.inputs) != 2:
        return None
    values = [graph.value(name) for name in (*node.inputs, *node.outputs)]
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


def _expand(writer: GraphWriter, node: Node, product: _Product) -> None:
    """Write the parts of an Einsum, in order."""
    result = node.outputs[0]
    shapes = [writer.shape(name) for name in node.inputs]
    size = {c: n for part, shape in zip((product.left, product.right), shapes, strict=True)
            for c, n in zip(part, shape, strict=True)}  # fmt: skip
    stack, rows, columns, depth = product.stack, product.rows, product.columns, product.depth
    left = _matrices(writer, node.inputs[0], product.left, (stack, rows, depth), size)
    right = _matrices(writer, node.inputs[1], product.right, (stack, depth, columns), size)
    outer = [size[c] for c in stack]
    shape = (*outer, _length(rows, size), _length(columns, size))
    letters = stack + rows + columns
    order = [letters.index(c) for c in product.result]
    whole = tuple(size[c] for c in letters)
    is_apart, is_ordered = len(rows) == len(columns) == 1, order == sorted(order)
    sums = result if is_apart and is_ordered else f"{result}.sums"
    writer.add("MatMul", (left, right), writer.declare(sums, shape))
    if not is_apart:
        apart = writer.declare(result if is_ordered else f"{result}.apart", whole)
        sums = writer.reshape(sums, whole, apart)
    if not is_ordered:
        shape = tuple(size[c] for c in product.result)
        writer.add("Transpose", (sums,), writer.declare(result, shape), {"perm": tuple(order)})


def _matrices(
    writer: GraphWriter, name: str, letters: str, parts: tuple[str, str, str], size: dict[str, int]
) -> str:
    """Make an operand a stack of matrices of the second part by the third."""
    wanted = "".join(parts)
    label = f"{name}.{letters}.{wanted}.{len(parts[0])}.{len(parts[1])}"
    order = tuple(letters.index(c) for c in wanted)
    if list(order) != sorted(order):
        turned = f"{label}.turned"
        if turned not in writer.values:
            writer.declare(turned, tuple(size[c] for c in wanted))
            writer.add("Transpose", (name,), turned, {"perm": order})
        name = turned
    shape = (*(size[c] for c in parts[0]), _length(parts[1], size), _length(parts[2], size))
    if len(parts[1]) == len(parts[2]) == 1:
        return name
    made = f"{label}.matrices"
    return (
        made if made in writer.values else writer.reshape(name, shape, writer.declare(made, shape))
    )


def _length(letters: str, size: dict[str, int]) -> int:
    return element_count(tuple(size[c] for c in letters))
