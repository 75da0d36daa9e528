"""What a model needs, byte by byte: the plan that `tightship plan` prints and `load` obeys."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

TensorKind = Literal["activation", "scratch"]
KernelKind = Literal["onednn", "numpy", "reference", "copy"]


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

    `load_bytes` counts live arena bytes while it runs. `dynamic_reason` is set where the step
    allocates outside the plan (data-dependent shape, reference kernel, sequence, string).
    """

    name: str
    operator: str
    kernel: KernelKind
    implementation: str
    load_bytes: int
    dynamic_reason: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Every byte a loaded model takes, and where.

    `peak_bytes` is the sum of its four parts; a plan is `exact` when nothing is allocated
    outside it while running, `bounded` when the steps with a `dynamic_reason` may.

    Attributes:
        weights_bytes: Packed constants, resident as long as the model.
        arena_bytes: Activations and scratch, at planned offsets.
        io_bytes: Inputs and outputs, bound where the caller has them.
        runtime_bytes: Libraries, generated code and program, measured and stated in advance.
        lower_bound_bytes: No plan of this program has a smaller arena.
        unplanned_bytes: The arena with every buffer at a place of its own.
        strategies: Arena bytes by planning strategy, for comparison.
        key: What the plan depends on besides the file (threads, CPU, library version).
    """

    model: str
    weights_bytes: int
    arena_bytes: int
    io_bytes: int
    runtime_bytes: int
    lower_bound_bytes: int
    unplanned_bytes: int
    strategy: str
    strategies: Mapping[str, int]
    steps: tuple[PlannedStep, ...]
    tensors: tuple[PlannedTensor, ...]
    key: Mapping[str, str]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def peak_bytes(self) -> int:
        """Everything the process gains: weights, arena, inputs and outputs, runtime."""
        return self.weights_bytes + self.arena_bytes + self.io_bytes + self.runtime_bytes

    @property
    def is_exact(self) -> bool:
        """Whether no step allocates outside the plan."""
        return all(step.dynamic_reason is None for step in self.steps)

    @property
    def peak_step(self) -> int:
        """The first step with the largest load; 0 for a program without steps."""
        loads = [step.load_bytes for step in self.steps]
        return loads.index(max(loads)) if loads else 0

    def live_at(self, step: int) -> tuple[PlannedTensor, ...]:
        """Tensors in the arena while `step` runs, largest first."""
        live = [t for t in self.tensors if t.start_step <= step < t.stop_step]
        return tuple(sorted(live, key=lambda t: (-t.size_bytes, t.offset_bytes, t.name)))
