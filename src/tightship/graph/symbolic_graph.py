"""Graph with symbolic lengths, valid for further input shapes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tightship.graph.ir import Graph
from tightship.graph.length import Trace

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
