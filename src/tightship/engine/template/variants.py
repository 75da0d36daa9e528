"""A model for input shapes other than those it was loaded with."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from tightship.engine.compile.compile_graph import Declared, Settings, compile_rewritten, prepare
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.shape_specializer import InputShapes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.engine.program.shape_key import Key
from tightship.errors import GraphError
from tightship.graph import Graph, Shape, agrees
from tightship.graph.symbolic_graph import SymbolicGraph

if TYPE_CHECKING:
    from tightship.engine.template import Template

TEMPLATES_MAX = 8
"""Templates kept; more of them are for shapes that have little in common."""


@dataclass(slots=True)
class Variants:
    """A model whose file leaves some lengths of its inputs open.

    What the passes make of its graph is kept as templates, so that most shapes need neither the
    file nor the passes again; a shape that no template holds for is read anew.

    Attributes:
        name: What reports call it.
        settings: What its plans depend on besides shapes.
        declared: Shapes of its inputs as the file has them; None for any rank.
        read: Its graph for some shapes.
        check: Refuses a plan for some shapes that the limit of loading does not hold.
        follow: Its graph with open lengths followed, given shapes that they have at first; gives
            None where they cannot be. Without it they are followed in what `read` gives.
        outputs: Shapes of its outputs that hold for all shapes of its inputs.
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
        """The model lowered and placed for these shapes, with constants packed as they are.

        Raises:
            GraphError: It cannot be run with them.
            InputError: They do not fit its inputs.
        """
        settings = self._settings(shapes)
        with self._lock:
            found = self._from_template(shapes)
            if found is None:
                made = self._follow(shapes) if self.follow else self._read(shapes)
                if isinstance(made, Graph):
                    return prepare(made, self.name, settings, packed)
                self._templates = [made, *self._templates[:TEMPLATES_MAX]]
                found = self._from_template(shapes)
                assert found is not None, "a template holds for the shapes it was made for"
        graph, template, node_count = found
        return compile_rewritten(graph, node_count, self.name, settings, packed, template.repeats)

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore) -> CompiledModel:
        """As `prepare`, from the file.

        Raises:
            GraphError, InputError: As `prepare`.
        """
        return prepare(self.read(shapes), self.name, self._settings(shapes), packed)

    def unshared(self, _key: Key, _own: Sequence[PackedWeight]) -> None:
        """Nothing: all weights are the process's own."""

    def _settings(self, shapes: InputShapes) -> Settings:
        """Those of loading; what was measured holds for the shapes it was measured with."""
        loaded = {name: tuple(shape) for name, shape in (self.settings.shapes or {}).items()}
        choice = self.settings.choice if loaded.items() <= dict(shapes).items() else None
        return replace(self.settings, shapes=shapes, choice=choice)

    def _from_template(self, shapes: InputShapes) -> "tuple[Graph, Template, int] | None":
        for template, node_count in self._templates:
            graph = template.graph(shapes)
            if graph is not None:
                return graph, template, node_count
        return None

    def _read(self, shapes: InputShapes) -> "tuple[Template, int] | Graph":
        """A template for these shapes and more; without one, the graph for these alone."""
        from tightship.engine.template import template_of  # few need it

        graph = self.read(shapes)
        template = template_of(graph, self.declared, self._rewrite)
        return graph if template is None else (template, len(graph.nodes))

    def _follow(self, shapes: InputShapes) -> "tuple[Template, int] | Graph":
        """As `_read`, by a frontend that follows lengths."""
        from tightship.engine.template import rewritten_template

        assert self.follow is not None
        followed = self.follow(shapes)
        template = None if followed is None else rewritten_template(followed, self._rewrite)
        if followed is None or template is None:
            return self.read(shapes)
        return template, len(followed.graph.nodes)

    def _rewrite(self, graph: Graph) -> Graph:
        from tightship.engine.lower.selection import rewritten

        return rewritten(graph, self.settings.without)

    def open_lengths(self) -> dict[str, tuple[bool, ...] | None]:
        """Of each input, which lengths the file leaves open; None for any rank."""
        return {
            name: None if shape is None else tuple(not isinstance(each, int) for each in shape)
            for name, shape in self.declared.items()
        }

    def output_shapes(self) -> Mapping[str, Shape | None]:
        """Of each output, as far as that is known of all shapes of inputs."""
        try:
            return self.outputs() if self.outputs else {}
        except GraphError:  # some nodes can be typed for known shapes only
            return {}

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether each shape has the rank and the fixed lengths that the file declares."""
        return all(agrees(shape, self.declared.get(name)) for name, shape in shapes)
