"""Turns a graph into a placement and its memory plan: all that happens before loading.

Lowering is imported when a graph is lowered, because a prepared model runs without it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tightship.engine.activations import EXACT, FLOAT32_PRODUCTS, passes_of
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import check_shapes, shape_or_length
from tightship.engine.library import (
    check_threads,
    check_workers,
    library_key,
    library_threads,
    open_library,
)
from tightship.engine.plan.footprint import counted_nodes, runtime_bytes
from tightship.engine.plan.placement import Placement, place
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.graph import Shape

if TYPE_CHECKING:
    from tightship.engine.lower.steps.options import Choice
    from tightship.engine.program.program import Lowered
    from tightship.graph import Graph
    from tightship.graph.equal_runs import LayerRun

_MODES = {"block_product": "exact", "block_product_int8": "int8", "encoded_product_int8": "int8"}
"""Modes of products by weights in blocks, by the implementation of their steps."""

Shapes = Mapping[str, Sequence[int] | int]
"""Shapes of inputs by name, and lengths of symbolic dimensions by name."""
Declared = Mapping[str, Shape | None]
GoOn = Callable[[], None]
"""Function called between two steps of lowering; raises if the result is no longer needed."""


@runtime_checkable
class ExportedProgram(Protocol):
    """Program of `torch.export`, recognized by an attribute that a path lacks."""

    @property
    def graph_module(self) -> object:
        """Graph of its operations."""


@runtime_checkable
class TracedFunction(Protocol):
    """Result of `jax.jit(function).trace(...)`, recognized by an attribute that a path lacks."""

    @property
    def jaxpr(self) -> object:
        """Equations of the function."""


@runtime_checkable
class OpenedModule(Protocol):
    """Module of torch or jax that was opened with example inputs."""

    @property
    def name(self) -> str:
        """Name in reports."""

    @property
    def declared(self) -> Declared:
        """Shapes of the inputs."""


ModelSource = (
    str
    | PathLike[str]
    | bytes
    | ExportedProgram
    | TracedFunction
    | OpenedModule
    | Callable[..., object]
)
"""A model: a path, the bytes of an ONNX file, or a program, module or function of torch or jax."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that a plan depends on besides the model.

    Attributes:
        shapes: Shapes by input, or lengths by dimension, that bind the symbolic dimensions.
        threads: Threads of each primitive.
        without: Names of passes to leave out.
        workers: Steps that run at once, each on one thread.
        workers_memory: Bytes that the arena may take beyond that for one worker; None for any.
        limit_bytes: Bytes that a plan for several workers is to keep to if one for one worker does;
            None for any.
        choice: Layouts that a measurement chose for these shapes, or another order of nodes.
        go_on: Check between steps of lowering; the plan does not depend on it.
    """

    shapes: Shapes | None = None
    threads: int = 1
    without: Collection[str] = ()
    choice: "Choice | None" = None
    workers: int = 1
    workers_memory: int | None = None
    limit_bytes: int | None = None
    go_on: GoOn | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_threads(self.threads)
        check_workers(self.workers, self.threads)
        check_shapes(self.shapes)

    @property
    def input_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes by input, of settings without lengths by dimension (see `open_for`)."""
        found: dict[str, tuple[int, ...]] = {}
        for name, shape in (self.shapes or {}).items():
            plain = shape_or_length(shape)
            assert isinstance(plain, tuple), f"the length of dimension `{name}` is not resolved"
            found[name] = plain
        return found


def prepare(
    graph: "Graph", name: str, settings: Settings, packed: PackedBefore | None = None
) -> CompiledModel:
    """Lower and place a graph; `packed` as for `compile_rewritten`.

    Raises:
        GraphError: A node cannot be run.
        LibraryError: oneDNN cannot be used.
        NotMovedError: The graph has few of its layers, and others cannot be copies of them.
    """
    from tightship.engine.lower.selection import rewritten

    small = rewritten(graph, settings.without, settings.go_on)
    nodes = counted_nodes(graph)
    repeats: tuple[LayerRun, ...] = ()
    if small.layers is not None:
        small, repeats = small.layers.whole(small)
    return compile_rewritten(small, nodes, name, settings, packed, repeats)


def compile_rewritten(
    graph: "Graph",
    node_count: int,
    name: str,
    settings: Settings,
    packed: PackedBefore | None = None,
    repeats: "Sequence[LayerRun]" = (),
) -> CompiledModel:
    """Select kernels for a graph that passes have rewritten, and place it.

    Args:
        graph: The rewritten graph.
        node_count: Nodes that the model's file has, as `counted_nodes` counts them.
        name: Name of the model in reports.
        settings: What else the plan depends on.
        packed: Constants, by name, as programs for other shapes have packed them; None where
            there are no other shapes.
        repeats: Repeated layers of the graph, if known.

    Raises:
        GraphError: A node cannot be run.
        LibraryError: oneDNN cannot be used.
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
        placement = (
            place(lowered) if settings.workers == 1 else _shared_out(lowered, node_count, settings)
        )
    return CompiledModel(placement, name, node_count, key_of(settings, placement))


def _shared_out(lowered: "Lowered", node_count: int, settings: Settings) -> Placement:
    """Place a program for several workers, within the limit if that is possible."""
    from tightship.engine.plan.worker_placement import place_for_workers  # few plans are for them

    most = None
    if settings.limit_bytes is not None:
        lowered_so = lowered._replace(workers=settings.workers)
        beside = aligned_offsets(lowered.weights)[1] + runtime_bytes(lowered_so, node_count)
        outside = sum(slot.size_bytes for slot in lowered.slots if slot.external)
        most = settings.limit_bytes - beside - outside
    return place_for_workers(lowered, settings.workers, settings.workers_memory, most)


def key_of(settings: Settings, placement: Placement) -> dict[str, str]:
    """Return what a plan depends on besides the model."""
    key = {"threads": str(settings.threads)}
    if settings.workers > 1:
        key["workers"] = str(settings.workers)
    if "onednn" in settings.without:
        key["kernels"] = "NumPy only"
    else:
        key |= library_key() | {"layouts": placement.lowered.layouts}
    if settings.choice is not None and "layouts" in key:
        key["layouts"] += " (tuned)"
        if not settings.choice.stream_weights:
            key["streamed_weights"] = "none (tuned)"
    modes = {step.implementation for step in placement.lowered.steps} & _MODES.keys()
    if modes:
        key["block_products"] = ", ".join(sorted({_MODES[name] for name in modes}))
    if EXACT in settings.without:
        key["activations"] = "int8"
    if FLOAT32_PRODUCTS in settings.without:
        key["precision"] = "bfloat16"
    if passes := passes_of(settings.without):
        key["without"] = ", ".join(passes)
    return key


def name_of(source: ModelSource) -> str:
    """Return the name of a model in reports."""
    if isinstance(source, str | PathLike):
        return Path(source).name
    if isinstance(source, bytes):
        return "model in memory"
    if isinstance(source, OpenedModule):
        return source.name
    return "traced function" if isinstance(source, TracedFunction) else "exported program"
