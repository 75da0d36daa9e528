"""Rules by operator for values with extended axes."""

from collections.abc import Callable
from functools import cache
from importlib import import_module

import numpy as np

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.writer import Axes, Beyond, Extent
from tightship.graph import DType, Node, element_count
from tightship.graph.operators import row_of
from tightship.graph.operators.row import Category

Rule = Callable[[Rewriter, Node], None]
RULES: dict[str, Rule] = {}
"""Rules of operators that are not element by element."""
KEEPS_ZERO = frozenset(
    {"Neg", "Abs", "Relu", "Sqrt", "Tanh", "Sin", "Cast", "CastLike", "Identity", "IsNaN", "IsInf"}
)
OF_ZEROS = frozenset({"Add", "Sub", "Mul", "Where", "Min", "Max", "Erf"})
"""Operators that make zeros of operands that are all zero."""
BOUNDED = OF_ZEROS | {"Cos", "Sigmoid"}
"""Operators that make finite results of finite operands."""


def rule(*operators: str) -> Callable[[Rule], Rule]:
    """Register a rule for operators."""

    def register(body: Rule) -> Rule:
        RULES.update(dict.fromkeys(operators, body))
        return body

    return register


def is_elementwise(node: Node) -> bool:
    """Whether each element of the result depends on the elements in its place alone."""
    return node.operator == "Identity" or row_of(node).category is Category.ELEMENTWISE


def visit(r: Rewriter, node: Node) -> None:
    """Write a node of the file's graph, rewritten if it depends on the past length.

    Raises:
        GraphError: It does, and its operator has no rule.
    """
    if not any(map(r.is_touched, node.reads)):
        r.writer.nodes.append(node)
        return
    if node.subgraphs or node.domain:
        raise r.refusal(node, "an operand that grows with the past")
    if _is_constant(r, node) or any(handled(r, node) for handled in _before_rules()):
        return
    rewrite = _rules().get(node.operator)
    if rewrite is None and is_elementwise(node):
        rewrite = elementwise
    if rewrite is not None:
        rewrite(r, node)
    elif any(r.axes_of(name) for name in node.reads) or any(r.added(n) for n in node.writes):
        raise r.refusal(node, "an operand that grows with the past")
    else:
        r.keep(node)
        r.changing.update(node.writes)


@cache
def _rules() -> dict[str, Rule]:
    """Import the modules that register rules."""
    for name in ("movement", "slices", "products", "reductions", "generation", "scattered"):
        import_module(f"tightship.engine.state.{name}")
    return RULES


@cache
def _before_rules() -> tuple[Callable[[Rewriter, Node], bool], ...]:
    """Import what comes before rules, which imports this package's rules."""
    from tightship.engine.state.counts import counted
    from tightship.engine.state.joined_masks import joined

    return counted, joined


def _is_constant(r: Rewriter, node: Node) -> bool:
    """Record the outputs of a node as constants, if they follow from lengths."""
    graph = r.followed.graph
    if not all(name in graph.known for name in node.writes):
        return False
    if all(name in r.followed.known for name in node.writes):
        r.data.update(node.writes)
        return True
    if any(name in r.followed.computed or r.added(name) for name in node.writes):
        return False
    r.writer.constants.update({name: graph.known[name] for name in node.writes})
    return True


def elementwise(r: Rewriter, node: Node) -> None:
    """Keep a node whose elements depend on elements at the same position alone."""
    r.keep(node)
    positions = node.operator in ("Cast", "Identity", "CastLike", "Dropout")
    for name in node.writes:
        rank = len(r.shape(name))
        axes: Axes = {}
        for axis, added in r.added(name).items():
            beyond = [
                extent.beyond
                for read in node.reads
                if (extent := r.axes_of(read).get(axis - rank + len(r.shape_of(read))))
            ]
            axes[axis] = Extent(added, _beyond(node, [*beyond, *_zeros(r, node)]))
        r.define(name, axes)
        if positions and node.inputs[0] in r.indices:
            r.indices.add(name)


def _zeros(r: Rewriter, node: Node) -> list[Beyond]:
    """Return an extent for each operand that is the number zero."""
    given = [name for name in node.reads if not r.is_touched(name)]
    found = [c for name in given if (c := r.followed.graph.constant(name)) is not None]
    return [Beyond.ZERO for c in found if element_count(c.shape) == 1 and not np.any(c.array())]


def _beyond(node: Node, found: list[Beyond]) -> Beyond:
    worst = max(found, default=Beyond.FINITE)
    if Beyond.ZERO in found:
        if node.operator in KEEPS_ZERO or (node.operator == "And"):
            return Beyond.ZERO
        if node.operator == "Mul" and worst is not Beyond.ANY:
            return Beyond.ZERO
        if worst is Beyond.ZERO and len(found) == len(node.inputs) and node.operator in OF_ZEROS:
            return Beyond.ZERO
    kept = node.operator in KEEPS_ZERO - {"Sqrt"} or node.operator in BOUNDED
    return max(worst, Beyond.FINITE) if kept or _is_integer(node) else Beyond.ANY


def _is_integer(node: Node) -> bool:
    """Whether results are booleans, which are finite."""
    return node.operator in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Not",
                             "And", "Or")  # fmt: skip


def at_least(axes: Axes, beyond: Beyond) -> Axes:
    """Return axes whose elements beyond the rows in use may be `beyond` or less."""
    return {axis: Extent(extent.added, max(extent.beyond, beyond)) for axis, extent in axes.items()}


def check_rows(r: Rewriter, node: Node, table: str, rows: int) -> None:
    """Refuse a context that a table read by position has too few rows for.

    Raises:
        GraphError: The table has fewer rows than the context.
    """
    context = r.followed.capacity
    if rows < context:
        raise r.refusal(
            node, f"the table `{table}` of {rows} rows, fewer than the context of {context}"
        )


def zeroed(r: Rewriter, name: str, axis: int) -> str:
    """Return a value with zeros beyond the rows in use of an axis."""
    extent = r.axes_of(name)[axis]
    if extent.beyond is Beyond.ZERO:
        return name
    value = r.writer.values[name]
    assert value.dtype is not None
    return r.writer.masked(name, axis, extent, False if value.dtype is DType.BOOL else 0)
