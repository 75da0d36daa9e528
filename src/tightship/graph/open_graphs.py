"""Models whose graph is another for each set of input shapes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tightship.graph.ir import Graph
from tightship.graph.layout import Shape


@dataclass(frozen=True, slots=True)
class OpenGraphs:
    """A graph for any shapes of the inputs that it may have.

    Attributes:
        read: The graph for some shapes, by input.
        declared: Which there may be: lengths that are no integers are open, and None is any rank.
        first: Shapes to load it with.
    """

    read: Callable[[Mapping[str, tuple[int, ...]]], Graph]
    declared: Mapping[str, Shape | None]
    first: Mapping[str, tuple[int, ...]]
