"""A graph for some shapes whose lengths are followed, so that it holds for others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tightship.graph.ir import Graph
from tightship.graph.length import Trace

Symbols = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SymbolicGraph:
    """A graph in which lengths are expressions of symbols.

    Attributes:
        graph: Its shapes, small constants and attributes hold the lengths.
        trace: What they mean, and the conditions so far.
        symbols: What shapes of its inputs give to the symbols; None where they do not fit.
    """

    graph: Graph
    trace: Trace
    symbols: Callable[[Mapping[str, Sequence[int]]], Symbols | None]
