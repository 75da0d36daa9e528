"""Says why a step allocates, and how much at most if its shape depends on data."""

from collections.abc import Callable, Mapping

from tightship.engine.lower.steps.builder import Builder
from tightship.graph import DType, Node, element_count, size_bytes
from tightship.graph.operators import Category, body, row_of
from tightship.graph.operators.shapes.shape_context import NoRuleError, ShapeContext

Shape = tuple[int, ...]
Largest = Callable[[ShapeContext], list[Shape]]
"""Function from the largest shapes of inputs to those of outputs."""

BY_RULE = frozenset({
    "ArgMax", "ArgMin", "Flatten", "Gather", "GatherElements", "GatherND", "Gemm", "MatMul",
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reshape", "ScatterElements",
    "ScatterND", "Softmax", "Squeeze", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose rule of shapes gives a larger result for larger operands."""


def unplanned_reason(builder: Builder, node: Node) -> str:
    """Say why a step allocates outside the plan; remember the largest shapes of its results."""
    values = [builder.value(name) for name in (*node.inputs, *node.writes) if name]
    if any(value.dtype is None for value in values):
        return "sequence, optional or map"
    if any(value.dtype is DType.STRING for value in values):
        return "strings"
    if any(not value.is_static for value in values):
        most = _most_bytes(builder, node)
        return "shape depends on data" + ("" if most is None else f"; at most {most} bytes")
    if node.subgraphs:
        return "runs a graph, which allocates its values"
    return "reference kernel allocates its results"


def _most_bytes(builder: Builder, node: Node) -> int | None:
    """Return the most bytes of a node's results; None if they do not follow from shapes."""
    values = [builder.value(name) if name else None for name in node.outputs]
    shapes = [each.static_shape if each and each.is_static else None for each in values]
    if any(each is not None and not each.is_static for each in values):
        largest = _largest_shapes(builder, node)
        if largest is None:
            return None
        shapes = [most if known is None else known
                  for known, most in zip(shapes, largest, strict=False)]  # fmt: skip
    total = 0
    for value, shape in zip(values, shapes, strict=True):
        if value is not None and value.dtype is not None and shape is not None:
            builder.records.largest[value.name] = shape
            total += size_bytes(value.dtype, shape)
    return total


def _largest_shapes(builder: Builder, node: Node) -> list[Shape] | None:
    shapes: list[Shape | None] = []
    for name in node.inputs:
        value = builder.value(name) if name else None
        is_known = value is None or value.is_static
        shape = builder.records.largest.get(name)
        if not is_known and shape is None:
            return None
        shapes.append(shape if value is None or not is_known else value.static_shape)
    rule = _rule_of(node)
    if rule is None:
        return None
    try:
        found = rule(ShapeContext(node, tuple(shapes), _elements(builder, node)))
    except NoRuleError:
        return None
    return found if len(found) >= len(node.outputs) else None


def _rule_of(node: Node) -> Largest | None:
    if node.domain or node.subgraphs:
        return None
    if row_of(node).category is Category.ELEMENTWISE:
        return _broadcast
    if node.operator in BY_RULE:
        found: Largest = body("shape", node.operator)
        return found
    return _LARGEST.get(node.operator)


def _elements(builder: Builder, node: Node) -> tuple[Shape | None, ...]:
    """Return the integers of each input that is known before the run."""
    constants = [builder.known.get(name) if name else None for name in node.inputs]
    return tuple(
        None if each is None or each.dtype is not DType.INT64
        else tuple(each.array().reshape(-1).tolist()) for each in constants
    )  # fmt: skip


def _broadcast(context: ShapeContext) -> list[Shape]:
    present = [shape for shape in context.shapes if shape is not None]
    rank = max(map(len, present))
    padded = [(1,) * (rank - len(shape)) + shape for shape in present]
    return [tuple(map(max, zip(*padded, strict=True)))]


def _concat(context: ShapeContext) -> list[Shape]:
    shapes = [context.shape(index) for index in range(len(context.shapes))]
    axis = context.integer("axis", 0) % len(shapes[0])
    lengths = list(map(max, zip(*shapes, strict=True)))
    lengths[axis] = sum(shape[axis] for shape in shapes)
    return [tuple(lengths)]


def _same(context: ShapeContext) -> list[Shape]:
    return [context.shape()]


def _best(context: ShapeContext) -> list[Shape]:
    return [context.shape()] * 2


def _non_zero(context: ShapeContext) -> list[Shape]:
    return [(len(context.shape()), element_count(context.shape()))]


def _suppressed(context: ShapeContext) -> list[Shape]:
    images, classes, boxes = context.shape(1)
    given = context.elements[2:3]
    if len(context.node.inputs) < 3 or not context.node.inputs[2]:
        return [(0, 3)]
    most = boxes if given[0] is None else min(max(given[0][0], 0), boxes)
    return [(images * classes * most, 3)]


def _chosen(context: ShapeContext) -> list[Shape]:
    """Bound Compress, which takes at most every slice."""
    whole = (element_count(context.shape()),)
    return [context.shape() if "axis" in context.node.attributes else whole]


def _unique(context: ShapeContext) -> list[Shape]:
    (most,) = _chosen(context)
    axis = context.node.attributes.get("axis", 0)
    assert isinstance(axis, int)
    return [most, *[(most[axis],)] * 3]


_LARGEST: Mapping[str, Largest] = {
    "Compress": _chosen,
    "Concat": _concat,
    "NonMaxSuppression": _suppressed,
    "NonZero": _non_zero,
    "Slice": _same,
    "TopK": _best,
    "Unique": _unique,
    "Where": _broadcast,
}
