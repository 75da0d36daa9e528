"""From a model file to a placement and its memory plan: all that happens before loading.

What lowers is imported when a graph is lowered: a prepared model runs without.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import check_shapes
from tightship.engine.library import check_threads, library_key, library_threads, open_library
from tightship.engine.plan.placement import Placement, place
from tightship.graph import Shape

if TYPE_CHECKING:
    from tightship.engine.lower.steps.alike_layers import LayerRun
    from tightship.engine.lower.steps.options import Choice
    from tightship.graph import Graph

Shapes = Mapping[str, Sequence[int]]
Declared = Mapping[str, Shape | None]
GoOn = Callable[[], None]
"""Called between two steps of lowering; raises where nobody waits for what they make."""


@runtime_checkable
class ExportedProgram(Protocol):
    """A program of `torch.export`, by what tells it from a path."""

    @property
    def graph_module(self) -> object:
        """Its steps."""


@runtime_checkable
class TracedFunction(Protocol):
    """What `jax.jit(function).trace(...)` gives, by what tells it from a path."""

    @property
    def jaxpr(self) -> object:
        """Its equations."""


ModelSource = str | PathLike[str] | bytes | ExportedProgram | TracedFunction


@dataclass(frozen=True, slots=True)
class Settings:
    """What a plan depends on besides the model.

    Attributes:
        shapes: Input shapes that bind the model's symbolic dimensions.
        threads: Threads of each primitive.
        without: Passes left out.
        choice: What a measurement chose for these shapes, or another order of nodes.
        go_on: No plan depends on it.
    """

    shapes: Shapes | None = None
    threads: int = 1
    without: Collection[str] = ()
    choice: "Choice | None" = None
    go_on: GoOn | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_threads(self.threads)
        check_shapes(self.shapes)


def prepare(
    graph: "Graph", name: str, settings: Settings, packed: PackedBefore | None = None
) -> CompiledModel:
    """Lower and place a graph; `packed` as for `compile_rewritten`.

    Raises:
        GraphError: A node cannot be run.
        LibraryError: oneDNN cannot be used.
    """
    from tightship.engine.lower.selection import rewritten

    return compile_rewritten(
        rewritten(graph, settings.without, settings.go_on),
        len(graph.nodes),
        name,
        settings,
        packed,
    )


def compile_rewritten(
    graph: "Graph",
    node_count: int,
    name: str,
    settings: Settings,
    packed: PackedBefore | None = None,
    repeats: "Sequence[LayerRun]" = (),
) -> CompiledModel:
    """Select kernels for a graph that passes have been over, and place it.

    Args:
        graph: What is left of it.
        node_count: Nodes that the model's file has.
        name: What reports call the model.
        settings: What else the plan depends on.
        packed: Constants, by name, as programs for other shapes have packed them; None where
            there are no other shapes.
        repeats: Layers of it that are alike, where they are known.

    Raises:
        GraphError, LibraryError: As `prepare`.
    """
    from tightship.engine.lower.selection import select

    if "onednn" not in settings.without:
        open_library()
    threads, without, go_on = settings.threads, settings.without, settings.go_on
    with library_threads(threads):
        choice = settings.choice
        lowered = select(graph, threads, without, packed, choice, repeats, go_on=go_on)
        if go_on is not None:
            go_on()
        placement = place(lowered)
    return CompiledModel(placement, name, node_count, _key(settings, placement))


def _key(settings: Settings, placement: Placement) -> dict[str, str]:
    key = {"threads": str(settings.threads)}
    if "onednn" in settings.without:
        key["kernels"] = "NumPy only"
    else:
        key |= library_key() | {"layouts": placement.lowered.layouts}
    if settings.choice is not None and "layouts" in key:
        key["layouts"] += " (tuned)"
        if not settings.choice.stream_weights:
            key["streamed_weights"] = "none (tuned)"
    if settings.without:
        key["without"] = ", ".join(sorted(settings.without))
    return key


def name_of(source: ModelSource) -> str:
    """What reports call a model."""
    if isinstance(source, str | PathLike):
        return Path(source).name
    if isinstance(source, bytes):
        return "model in memory"
    return "traced function" if isinstance(source, TracedFunction) else "exported program"
