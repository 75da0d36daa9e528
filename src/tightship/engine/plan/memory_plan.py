"""Memory plan of a model: every byte that it needs; `tightship plan` prints it, `load` obeys it.

Modules that draw and write plans are imported on use: they keep megabytes resident that a process
which only runs a model does not need.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

from tightship.brief import brief
from tightship.engine.program.program import KernelKind
from tightship.planner import Plan
from tightship.public_calls import public_methods

if TYPE_CHECKING:
    from tightship.engine.plan.planned_apart import PlannedApart
    from tightship.planner.parallel.concurrency import Concurrency
    from tightship.view.picture import Picture

TensorKind = Literal["activation", "scratch"]
"""Use of a planned tensor: a value of the graph, or memory that a kernel needs while it runs."""


DECIDED = frozenset({"If", "Loop"})
"""Operators whose operands decide what they run, and how often."""


@brief
@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """Value or scratchpad at an offset of the arena, live during steps `[start_step, stop_step)`.

    `shares_with` names the value whose bytes it took over (in place, or a view); None if it has
    bytes of its own. `type` is its shape and type, as `1x64 float32`; empty for scratch.
    """

    name: str
    kind: TensorKind
    size_bytes: int
    offset_bytes: int
    start_step: int
    stop_step: int
    shares_with: str | None = None
    type: str = ""


@brief
@dataclass(frozen=True, slots=True)
class PlannedWeight:
    """Constant in the layout that its kernel reads; one read in two layouts is there twice.

    `type` is its shape and type before it was packed, as `64x32 float32`; `step` is the first that
    reads it, -1 if none does.
    """

    name: str
    size_bytes: int
    type: str = ""
    step: int = -1


@brief
@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One kernel call: its node and the kernel that runs it.

    `live_bytes` counts live arena bytes during the step. `dynamic_reason` says why the step
    allocates outside the plan (data-dependent shape, reference kernel, sequence, string), if it
    does. `reads` and `writes` name its values, without constants.
    """

    name: str
    operator: str
    kernel: KernelKind
    implementation: str
    live_bytes: int
    dynamic_reason: str | None = None
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    if not TYPE_CHECKING:  # a checker of types should know the present names only

        def __getattr__(self, name: str) -> object:
            from tightship.deprecated import old_attribute

            return old_attribute(self, name)


@public_methods
@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Every byte that a loaded model takes, and where.

    `peak_bytes` is the sum of its four parts. A plan is `exact` if nothing is allocated outside it
    while running, `bounded` if steps with a `dynamic_reason` may allocate.

    Attributes:
        arena: Activations and scratch as buffers at planned offsets.
        weights_bytes: Packed constants, resident as long as the model is.
        io_bytes: Inputs and outputs, in the caller's memory.
        runtime_bytes: Libraries, generated code and program, from measured coefficients.
        strategies: Arena bytes by planning strategy, for comparison; `none` gives every buffer
            bytes of its own.
        key: What the plan depends on besides the file (threads, CPU, library version).
        weights: The packed constants that `weights_bytes` counts, each in whole cache lines.
        optimizer_bytes: Part of `weights_bytes` that an optimizer keeps, of a plan of a training
            step; 0 otherwise.
        concurrency: What the arena was chosen from, if it is for several workers; None otherwise.
        apart: Memory of loading, if another process plans the model and `runtime_bytes` is for the
            process that takes it over; None where the process that loads plans it itself.
    """

    model: str
    arena: Plan
    weights_bytes: int
    io_bytes: int
    runtime_bytes: int
    strategies: Mapping[str, int]
    steps: tuple[PlannedStep, ...]
    tensors: tuple[PlannedTensor, ...]
    key: Mapping[str, str]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    weights: tuple[PlannedWeight, ...] = ()
    optimizer_bytes: int = 0
    concurrency: "Concurrency | None" = None
    apart: "PlannedApart | None" = None

    @property
    def arena_bytes(self) -> int:
        """Size of the arena."""
        return self.arena.peak_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """Lower bound on the arena of any plan of this program."""
        return self.arena.lower_bound_bytes

    @property
    def peak_bytes(self) -> int:
        """Bytes that the process gains: weights, arena, inputs and outputs, runtime."""
        return self.weights_bytes + self.arena_bytes + self.io_bytes + self.runtime_bytes

    @property
    def here_bytes(self) -> int:
        """Peak of a process that plans the model itself."""
        return self.peak_bytes if self.apart is None else self.apart.here_bytes

    @property
    def unplanned_bytes(self) -> int:
        """Size of an arena in which no buffers share bytes."""
        return self.strategies["none"]

    @property
    def is_exact(self) -> bool:
        """Whether no step allocates outside the plan."""
        return all(step.dynamic_reason is None for step in self.steps)

    @property
    def is_constant_time(self) -> bool:
        """Whether runs take equally long: the plan is exact, and no If or Loop is in it."""
        return self.is_exact and all(step.operator not in DECIDED for step in self.steps)

    @property
    def peak_step(self) -> int:
        """First step with the most live bytes; 0 for a program without steps."""
        loads = [step.live_bytes for step in self.steps]
        return loads.index(max(loads)) if loads else 0

    def picture(self) -> "Picture":
        """Convert the plan to the plain data that views draw."""
        from tightship.engine.plan.drawing import picture_of

        return picture_of(self)

    def table(self) -> str:
        """Tabulate totals, strategies, and the peak with the tensors live at it."""
        from tightship.engine.plan.drawing import table_of

        return table_of(self)

    def to_json(self) -> dict[str, object]:
        """Convert the plan to JSON values; amounts are integers named `*_bytes`."""
        from tightship.engine.plan.drawing import json_of

        return json_of(self)

    def save(self, path: str | PathLike[str], *, graph: bool = False) -> None:
        """Write the plan: `.html` and `.svg` as a picture, `.json`, `.csv`, or `.txt`.

        A CSV has the columns `id,lower,upper,size,offset` of minimalloc. The file is replaced whole
        or not at all.

        Args:
            path: Path of the file.
            graph: Whether to draw the network, its nodes coloured by the bytes that they hold,
                instead of the arena; for `.html`, `.svg` and `.json`.

        Raises:
            InputError: The suffix of `path` is another.
        """
        from pathlib import Path

        from tightship.engine.plan.drawing import save, save_graph

        (save_graph if graph else save)(self, Path(path))

    def __repr__(self) -> str:
        kind = "exact" if self.is_exact else "bounded"
        return f"<tightship.MemoryPlan {self.model}: peak {self.peak_bytes} bytes, {kind}>"

    def _repr_html_(self) -> str:
        from tightship.engine.plan.drawing import svg_of

        return svg_of(self)
