"""Follows the past length of a decoder through the shapes and small integers of its graph."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tightship.engine.state.file_graphs import PAST
from tightship.engine.template.retype import Retyper
from tightship.errors import GraphError
from tightship.graph import Graph, Node, Value
from tightship.graph.length import Trace, is_length
from tightship.graph.operators.shapes.shape_context import NoRuleError
from tightship.graph.symbolic import SymbolicConstant

Linear = tuple[int, int]
"""`a` and `b` of `a * past + b`."""


class OddLengthError(Exception):
    """Raised for a length that grows with the past in another way than a cache's rows."""


@dataclass(slots=True)
class _PastRetyper(Retyper):
    """Retyper that knows Attention with a past, and names the operator that has no rule."""

    def _retype(self, node: Node) -> None:
        if not any(name in self.values or name in self.known for name in node.reads):
            return
        try:
            if _joins_past(node):
                self._retype_attention(node)
            else:
                Retyper._retype(self, node)
        except (NoRuleError, TypeError):
            raise GraphError(
                f"Node `{node.name}` ({node.operator}) depends on the past length in a way that "
                "cannot be planned for a whole context."
            ) from None

    def _retype_attention(self, node: Node) -> None:
        new, past = (self._shape(node.inputs[index]) for index in (1, 4))
        if new is None or past is None:
            raise NoRuleError
        rows = past[2] + new[-2]
        for name in node.outputs[1:3]:
            if name:
                self._define(name, (*past[:2], rows, self.graph.value(name).static_shape[3]))
        if any(node.outputs[3:]):
            raise NoRuleError


@dataclass(frozen=True, slots=True)
class FollowedGraph:
    """Graph read for one past length, with what depends on it as expressions.

    Attributes:
        graph: The graph, for `PAST` rows of past and `steps` new ones.
        capacity: Rows that caches will have.
        steps: New rows.
        values: Values whose shapes contain the past length.
        known: Small integer constants that contain it.
        computed: Other constants that are computed from lengths with it.
    """

    graph: Graph
    capacity: int
    steps: int
    trace: Trace
    past: int
    values: Mapping[str, Value] = field(default_factory=dict)
    known: Mapping[str, SymbolicConstant] = field(default_factory=dict)
    computed: frozenset[str] = frozenset()

    def linear(self, length: int) -> Linear:
        """Return a length as `a * past + b`.

        Raises:
            OddLengthError: The length is not of this form.
        """
        if not is_length(length):
            return 0, length
        found = self.trace.linear(length, self.past)
        if found is None:
            raise OddLengthError("a length that is not a sum of the past length and a number")
        return found

    def shape(self, name: str) -> tuple[Linear, ...]:
        """Return the shape of a value, each length as `a * past + b`."""
        value = self.values.get(name) or self.graph.value(name)
        if not value.is_static:
            raise GraphError(f"The shape of `{name}` depends on data.")
        return tuple(map(self.linear, value.static_shape))

    def elements(self, name: str) -> tuple[Linear, ...] | None:
        """Return the elements of a small integer constant; None if they are unknown."""
        symbolic = self.known.get(name)
        if symbolic is not None:
            return tuple(map(self.linear, symbolic.elements.flat))
        constant = self.graph.constant(name)
        if constant is None:
            return None
        return tuple((0, int(each)) for each in constant.array().reshape(-1).tolist())


def follow(
    graph: Graph, inputs: Mapping[str, Sequence[tuple[int, int]]], capacity: int, steps: int
) -> FollowedGraph:
    """Follow the past length from the inputs whose shapes contain it.

    Args:
        graph: Graph for `PAST` rows of past.
        inputs: Shapes of these inputs, each length as `a * past + b`.
        capacity: Rows that caches will have.
        steps: New rows.

    Raises:
        GraphError: A node depends on the past length in a way that has no rule.
    """
    trace = Trace()
    past = trace.symbol("past", PAST)
    shapes = {name: tuple(a * past + b for a, b in shape) for name, shape in inputs.items()}
    retyper = _PastRetyper(graph, trace)
    retyper.retyped(shapes)
    known = {name: c for name, c in retyper.known.items() if isinstance(c, SymbolicConstant)}
    computed = frozenset(retyper.known.keys() - known.keys())
    values = {n: v for n, v in retyper.values.items() if any(map(is_length, v.shape or ()))}
    found = FollowedGraph(graph, capacity, steps, trace, past, values, known, computed)
    _check(found)
    return found


def _joins_past(node: Node) -> bool:
    return node.operator == "Attention" and not node.domain and any(node.inputs[4:6])


def _check(followed: FollowedGraph) -> None:
    """Check that each decision on a length is the same for all lengths of the past.

    Whether a length is 1 does not count, because shapes broadcast alike either way, nor whether it
    is 0, of which the file's graph itself has no other reading; nor on which side of a bound it is
    where it equals the bound, because shape rules give the same length on both.
    """
    last = followed.capacity - followed.steps
    for (comparison, left, right), outcome in followed.trace.conditions.items():
        ends = [
            [followed.trace.evaluated(number, {"past": past}) for number in (left, right)]
            for past in (0, last)
        ]
        if comparison is operator.eq:
            (one, other), (last_one, last_other) = ends
            signs = one - other, last_one - last_other
            is_same = signs == (0, 0) if outcome else signs[0] * signs[1] > 0
            is_same = is_same or (not outcome and last_other == other and other in (0, 1))
        else:
            is_same = all(comparison(*pair) is outcome for pair in ends if pair[0] != pair[1])
        if not is_same:
            a, b = (followed.trace.evaluated(right, {"past": n}) for n in (0, last))
            limit = f"{a}" if a == b else f"{a} to {b}"
            raise GraphError(
                f"The graph decides by whether a length that grows with the past passes {limit}, "
                f"and a context of {followed.capacity} has both cases."
            )
