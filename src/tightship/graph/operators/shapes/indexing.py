"""Symbolic shape rules of indexing operators, TopK and ArgMax."""

from tightship.graph.operators.shapes.shape_context import NoRuleError, Shape, ShapeContext


def gather(context: ShapeContext) -> list[Shape]:
    shape, axis = context.shape(), context.integer("axis", 0)
    axis = axis % len(shape)
    return [(*shape[:axis], *context.shape(1), *shape[axis + 1 :])]


def gather_elements(context: ShapeContext) -> list[Shape]:
    return [context.shape(1)]


def gather_tuples(context: ShapeContext) -> list[Shape]:
    shape, indices = context.shape(), context.shape(1)
    return [(*indices[:-1], *shape[context.integer("batch_dims", 0) + int(indices[-1]) :])]


def best(context: ShapeContext) -> list[Shape]:
    shape = context.shape()
    count = context.integers("", 1) if len(context.node.inputs) > 1 else (context.integer("k", 0),)
    if count is None:
        raise NoRuleError
    axis = context.integer("axis", -1) % len(shape)
    if not 0 < count[0] <= shape[axis]:
        raise NoRuleError
    return [(*shape[:axis], count[0], *shape[axis + 1 :])] * 2


def position(context: ShapeContext) -> list[Shape]:
    shape = context.shape()
    axis = context.integer("axis", 0) % len(shape)
    kept = (1,) if context.integer("keepdims", 1) else ()
    return [(*shape[:axis], *kept, *shape[axis + 1 :])]
