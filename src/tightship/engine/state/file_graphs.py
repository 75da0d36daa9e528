"""Graphs of a file for several lengths, of which few are read and the others bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tightship.graph import Shape

if TYPE_CHECKING:
    from tightship.engine.template.template import Template
    from tightship.graph import Graph

Shapes = Mapping[str, tuple[int, ...]]
Read = Callable[[Shapes], "Graph"]
"""Reads the file's graph for shapes of all inputs."""

PAST = 3
"""Past length that a decoder's graph is read with; what is found holds for all."""
TEMPLATES_MAX = 2
"""Templates kept: a single token has less to broadcast than several."""


@dataclass(slots=True)
class FileGraphs:
    """Graphs of a decoder's file. Binding one to other lengths takes a thirtieth of reading it.

    A graph is made a template once others are wanted for which that may hold: the programs for a
    prompt and for a token alone need none, nor do files of whose equal layers few are read.

    Attributes:
        read: Function that reads one.
        declared: Inputs as the file declares them.
    """

    read: Read
    declared: Mapping[str, Shape | None]
    _graphs: "list[tuple[Shapes, Graph]]" = field(default_factory=list)
    """Graphs that were read last, with their shapes, and are no templates yet."""
    _templates: "list[Template]" = field(default_factory=list)
    _has_rules: bool = True
    """Whether no operator without a rule for symbolic lengths was met."""

    def __call__(self, shapes: Shapes) -> "Graph":
        """Return the graph for shapes of all inputs."""
        for known, graph in self._graphs:
            if known == shapes:
                return graph
        self._make_templates(shapes)
        for template in self._templates:
            bound = template.graph(shapes)
            if bound is not None:
                return bound
        graph = self.read(shapes)
        if self._has_rules and graph.few is None:
            self._graphs = [(dict(shapes), graph), *self._graphs[: TEMPLATES_MAX - 1]]
        return graph

    def _make_templates(self, shapes: Shapes) -> None:
        """Make templates of the graphs that have lengths of 1 where shapes have them."""
        from tightship.engine.template.template import template_of  # stored programs need none

        for known, graph in self._graphs:
            if self._has_rules and _ones(known) == _ones(shapes):
                made = template_of(graph, self.declared, lambda followed: followed)
                self._has_rules = bool(made)
                if made:
                    self._templates = [made, *self._templates[: TEMPLATES_MAX - 1]]
        kept = [each for each in self._graphs if _ones(each[0]) != _ones(shapes)]
        self._graphs = kept if self._has_rules else []


def _ones(shapes: Shapes) -> set[tuple[str, int]]:
    """Return inputs and axes of length 1, of which graphs have less to broadcast."""
    return {(name, axis) for name, shape in shapes.items()
            for axis, length in enumerate(shape) if length == 1}  # fmt: skip
