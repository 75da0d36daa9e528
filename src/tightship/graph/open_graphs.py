"""Models that have another graph for each set of input shapes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tightship.graph.ir import Graph
from tightship.graph.layout import Shape


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
