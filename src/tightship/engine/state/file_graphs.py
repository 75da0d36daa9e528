"""Graphs of a file for several lengths, of which few are read and the others bound."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tightship.graph import Shape

if TYPE_CHECKING:
    from tightship.engine.template.template import Template
    from tightship.graph import Graph

Read = Callable[[Mapping[str, tuple[int, ...]]], "Graph"]
"""Reads the file's graph for shapes of all inputs."""

PAST = 3
"""Past length that a decoder's graph is read with; what is found holds for all."""
TEMPLATES_MAX = 2
"""Templates kept: a single token has less to broadcast than several."""


@dataclass(slots=True)
class FileGraphs:
    """Graphs of a decoder's file. Binding one to other lengths takes a thirtieth of reading it.

    Attributes:
        read: Function that reads one.
        declared: Inputs as the file declares them.
    """

    read: Read
    declared: Mapping[str, Shape | None]
    _templates: "list[Template]" = field(default_factory=list)
    _has_rules: bool = True
    """Whether no operator without a rule for symbolic lengths was met."""

    def __call__(self, shapes: Mapping[str, tuple[int, ...]]) -> "Graph":
        """Return the graph for shapes of all inputs."""
        from tightship.engine.template.template import template_of  # stored programs need none

        for template in self._templates:
            bound = template.graph(shapes)
            if bound is not None:
                return bound
        graph = self.read(shapes)
        made = self._has_rules and template_of(graph, self.declared, lambda followed: followed)
        if made:
            self._templates = [made, *self._templates[: TEMPLATES_MAX - 1]]
        self._has_rules = bool(made)
        return graph
