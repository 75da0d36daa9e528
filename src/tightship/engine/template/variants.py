"""Compiles a model for further input shapes, by templates where possible."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tightship.engine.compile.compile_graph import Declared, Settings, compile_rewritten, prepare
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import Key
from tightship.engine.compile.shape_specializer import GraphSource, InputShapes
from tightship.engine.plan.footprint import counted_nodes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.errors import GraphError
from tightship.graph import Graph, Shape, agrees
from tightship.graph.open_graphs import SymbolicGraph

if TYPE_CHECKING:
    from tightship.engine.template import Template

TEMPLATES_MAX = 8
"""Templates kept; a model that needs more has shapes with little in common."""


@dataclass(slots=True)
class Variants:
    """Model whose file leaves some lengths of its inputs open.

    Its rewritten graph is kept as templates, so that most shapes need neither the file nor the
    passes again. A shape that no template covers is read anew.

    Attributes:
        name: Name of the model in reports.
        settings: Settings that its plans depend on besides shapes.
        declared: Input shapes as the file declares them; None for any rank.
        read: Function that returns the graph for some shapes.
        check: Function that raises if a plan for some shapes exceeds the limit of loading.
        follow: Function that returns the graph with symbolic lengths, given example shapes, or None
            if a length cannot be symbolic. If absent, the graph of `read` is used.
        outputs: Function that returns the output shapes that hold for all input shapes.
    """

    name: str
    settings: Settings
    declared: Declared
    read: Callable[[InputShapes], Graph]
    check: Callable[[MemoryPlan, InputShapes], None]
    follow: Callable[[InputShapes], SymbolicGraph | None] | None = None
    outputs: Callable[[], Mapping[str, Shape | None]] | None = None
    _templates: "list[tuple[Template, int]]" = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def prepare(
        self, shapes: InputShapes, packed: PackedBefore = MappingProxyType({})
    ) -> CompiledModel:
        """Lower and place the model for these shapes, reusing packed layouts of constants.

        Raises:
            GraphError: The model cannot be run with them.
            InputError: They do not match its inputs.
        """
        settings = self._settings(shapes)
        with self._lock:
            found = self._from_template(shapes)
            if found is None:
                made = self._follow(shapes) if self.follow else self._read(shapes)
                if isinstance(made, Graph):
                    return prepare(made, self.name, settings, packed)
                made[0].share([template for template, _ in self._templates])
                self._templates = [made, *self._templates[:TEMPLATES_MAX]]
                found = self._from_template(shapes)
                assert found is not None, "a template holds for the shapes it was made for"
        graph, template, node_count = found
        return compile_rewritten(graph, node_count, self.name, settings, packed, template.repeats)

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore) -> CompiledModel:
        """Prepare from the file, with the arguments and errors of `prepare`."""
        return prepare(self.read(shapes), self.name, self._settings(shapes), packed)

    def unshared(self, _key: Key, _own: Sequence[PackedWeight]) -> None:
        """Return None, because all weights belong to the process."""

    def _settings(self, shapes: InputShapes) -> Settings:
        """Return the settings for some shapes; a measured choice holds only for its own shapes."""
        loaded = self.settings.input_shapes
        choice = self.settings.choice if loaded.items() <= dict(shapes).items() else None
        return replace(self.settings, shapes=shapes, choice=choice)

    def _from_template(self, shapes: InputShapes) -> "tuple[Graph, Template, int] | None":
        for template, node_count in self._templates:
            graph = template.graph(shapes)
            if graph is not None:
                return graph, template, node_count
        return None

    def _read(self, shapes: InputShapes) -> "tuple[Template, int] | Graph":
        """Make a template from these shapes, or else the graph for these shapes alone."""
        from tightship.engine.template import template_of  # few need it

        graph = self.read(shapes)
        template = template_of(graph, self.declared, self._rewrite)
        return graph if template is None else (template, counted_nodes(graph))

    def _follow(self, shapes: InputShapes) -> "tuple[Template, int] | Graph":
        """Make a template as `_read` does, from a frontend's symbolic graph."""
        from tightship.engine.template import rewritten_template

        assert self.follow is not None
        followed = self.follow(shapes)
        template = None if followed is None else rewritten_template(followed, self._rewrite)
        if followed is None or template is None:
            return self.read(shapes)
        return template, counted_nodes(followed.graph)

    def _rewrite(self, graph: Graph) -> Graph:
        from tightship.engine.lower.selection import rewritten

        return rewritten(graph, self.settings.without)

    def open_lengths(self) -> dict[str, tuple[bool, ...] | None]:
        """Tell which lengths of each input the file leaves open; None for any rank."""
        return {
            name: None if shape is None else tuple(not isinstance(each, int) for each in shape)
            for name, shape in self.declared.items()
        }

    def output_shapes(self) -> Mapping[str, Shape | None]:
        """Return output shapes as far as they are known for all input shapes."""
        try:
            return self.outputs() if self.outputs else {}
        except GraphError:  # some nodes can be typed for known shapes only
            return {}

    def source(self) -> GraphSource:
        """Return the source of the model's graphs."""
        alone = replace(self.settings, workers=1)
        return GraphSource(self.read, self.declared, alone)

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether each shape has the rank and the fixed lengths that the file declares."""
        return all(agrees(shape, self.declared.get(name)) for name, shape in shapes)
