"""What a model needs, byte by byte: the plan that `tightship plan` prints and `load` obeys.

What draws and writes plans is imported when it is asked for: it keeps megabytes resident that
a process which only runs a model can do without.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Literal

from tightship.engine.program.kernel_kind import KernelKind
from tightship.planner import Plan

if TYPE_CHECKING:
    from tightship.view.picture import Picture

TensorKind = Literal["activation", "scratch"]


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """A value or a scratchpad at its place in the arena, live in `[start_step, stop_step)`.

    `shares_with` names the value whose bytes it took over (in place, or a view); None if it
    came to fresh bytes.
    """

    name: str
    kind: TensorKind
    size_bytes: int
    offset_bytes: int
    start_step: int
    stop_step: int
    shares_with: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One kernel call: where it comes from and what runs it.

    `live_bytes` counts live arena bytes while it runs. `dynamic_reason` is set where the step
    allocates outside the plan (data-dependent shape, reference kernel, sequence, string).
    """

    name: str
    operator: str
    kernel: KernelKind
    implementation: str
    live_bytes: int
    dynamic_reason: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Every byte a loaded model takes, and where.

    `peak_bytes` is the sum of its four parts; a plan is `exact` when nothing is allocated
    outside it while running, `bounded` when the steps with a `dynamic_reason` may.

    Attributes:
        arena: Activations and scratch as buffers at planned offsets.
        weights_bytes: Packed constants, resident as long as the model.
        io_bytes: Inputs and outputs, bound where the caller has them.
        runtime_bytes: Libraries, generated code and program, measured and stated in advance.
        strategies: Arena bytes by planning strategy, for comparison; `none` gives every buffer
            a place of its own.
        key: What the plan depends on besides the file (threads, CPU, library version).
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

    @property
    def arena_bytes(self) -> int:
        """Size of the arena."""
        return self.arena.peak_bytes

    @property
    def lower_bound_bytes(self) -> int:
        """No plan of this program has a smaller arena."""
        return self.arena.lower_bound_bytes

    @property
    def peak_bytes(self) -> int:
        """Everything the process gains: weights, arena, inputs and outputs, runtime."""
        return self.weights_bytes + self.arena_bytes + self.io_bytes + self.runtime_bytes

    @property
    def unplanned_bytes(self) -> int:
        """The arena with every buffer at a place of its own."""
        return self.strategies["none"]

    @property
    def is_exact(self) -> bool:
        """Whether no step allocates outside the plan."""
        return all(step.dynamic_reason is None for step in self.steps)

    @property
    def peak_step(self) -> int:
        """The first step with the largest load; 0 for a program without steps."""
        loads = [step.live_bytes for step in self.steps]
        return loads.index(max(loads)) if loads else 0

    def picture(self) -> "Picture":
        """The plan as the plain data that views draw."""
        from tightship.engine.plan.drawing import picture_of

        return picture_of(self)

    def table(self) -> str:
        """What `tightship plan` prints: totals, strategies, the peak and what lives there."""
        from tightship.engine.plan.drawing import table_of

        return table_of(self)

    def to_json(self) -> dict[str, object]:
        """The plan as JSON values; amounts are integers named `*_bytes`."""
        from tightship.engine.plan.drawing import json_of

        return json_of(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the plan: `.html` and `.svg` as a picture, `.json`, `.csv`, or `.txt`.

        A CSV has the columns `id,lower,upper,size,offset` of minimalloc. Nothing is left
        half-written.

        Raises:
            InputError: The name ends in something else.
        """
        from pathlib import Path

        from tightship.engine.plan.drawing import save

        save(self, Path(path))

    def __repr__(self) -> str:
        kind = "exact" if self.is_exact else "bounded"
        return f"<tightship.MemoryPlan {self.model}: peak {self.peak_bytes} bytes, {kind}>"

    def _repr_html_(self) -> str:
        from tightship.engine.plan.drawing import svg_of

        return svg_of(self)
