"""Graphs for input shapes: read anew for each set, or one with symbolic lengths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tightship.graph.ir import Graph
from tightship.graph.layout import Shape
from tightship.graph.length import Trace


@dataclass(frozen=True, slots=True)
class OpenGraphs:
    """Source of graphs for input shapes.

    Attributes:
        read: Function that returns the graph for shapes by input.
        declared: Allowed shapes; lengths that are not integers are open, and None allows any rank.
        first: Shapes to load the model with.
    """

    read: Callable[[Mapping[str, tuple[int, ...]]], Graph]
    declared: Mapping[str, Shape | None]
    first: Mapping[str, tuple[int, ...]]


Symbols = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SymbolicGraph:
    """Graph whose lengths are expressions of symbols.

    Attributes:
        graph: Graph whose shapes, small constants and attributes contain the lengths.
        trace: Expressions of the lengths, and the conditions so far.
        symbols: Function from input shapes to the values of symbols; None if they do not match.
    """

    graph: Graph
    trace: Trace
    symbols: Callable[[Mapping[str, Sequence[int]]], Symbols | None]
