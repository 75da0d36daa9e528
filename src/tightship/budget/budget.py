"""Defines a budget: most memory that a model may take, and what a plan makes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tightship.brief import brief
from tightship.budget.training import Training
from tightship.quantity import format_bytes
from tightship.view.picture import Picture


@brief
@dataclass(frozen=True, slots=True)
class Budget:
    """Most bytes that a model may take, with given shapes and threads.

    Attributes:
        model: File of the model.
        limit_bytes: Most bytes of its peak; None records the peak alone.
        shapes: Shapes by input, and lengths by the name of a dimension.
        threads: Threads of each kernel.
        dynamic_bytes: Bound on what steps outside the plan allocate; 0 permits none.
        name: Name in tables; that of the file and the shapes if it is empty.
        training: Training step that the limit is for; None for inference.
    """

    model: Path
    limit_bytes: int | None = None
    shapes: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    threads: int = 1
    dynamic_bytes: int = 0
    name: str = ""
    training: Training | None = None

    @property
    def title(self) -> str:
        """Name in tables and lock files."""
        if self.name:
            return self.name
        lengths = [f"{name}={_shown(shape)}" for name, shape in self.shapes.items()]
        threads = [f"threads={self.threads}"] if self.threads > 1 else []
        step = ["training"] if self.training is not None else []
        return " ".join([self.model.name, *lengths, *threads, *step])


@brief
@dataclass(frozen=True, slots=True)
class BudgetResult:
    """A budget, and the plan of its model."""

    budget: Budget
    plan: Picture

    @property
    def needed_bytes(self) -> int:
        """Bytes of the plan, and those permitted outside of it."""
        return self.plan.peak_bytes + self.budget.dynamic_bytes

    @property
    def is_unbounded(self) -> bool:
        """Whether steps allocate outside the plan and the budget permits them no bytes."""
        return not self.plan.is_exact and not self.budget.dynamic_bytes

    @property
    def fits(self) -> bool:
        """Whether the model is certain to stay within its budget."""
        limit = self.budget.limit_bytes
        return limit is None or (self.needed_bytes <= limit and not self.is_unbounded)

    @property
    def over_bytes(self) -> int:
        """Bytes above the limit; 0 if there are none."""
        return max(0, self.needed_bytes - (self.budget.limit_bytes or self.needed_bytes))

    @property
    def largest(self) -> str:
        """The largest tensor or weight at the peak, with its bytes; empty for an empty model."""
        live = self.plan.live_at(self.plan.peak_step())
        tensors = [(each.size_bytes, each.name, "") for each in live[:1]]
        weights = [(each.size_bytes, each.name, "weight ") for each in self.plan.weights]
        size, name, what = max([*tensors, *weights], default=(0, "", ""))
        return f"{what}{name} {format_bytes(size)}" if name else ""

    def message(self) -> str:
        """Say on one line what the model needs, of what, and by which tensor."""
        parts = {"arena": self.plan.arena_bytes, **self.plan.parts}
        shown = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts.items())
        limit = self.budget.limit_bytes
        if limit is not None and self.is_unbounded:
            steps = ", ".join(f"`{step.name}`" for _, step in self.plan.dynamic_steps[:3])
            return (
                f"`{self.budget.title}` has steps that allocate outside the plan ({steps}); give "
                "a bound on what they take, `dynamic`."
            )
        text = f"`{self.budget.title}` needs {format_bytes(self.needed_bytes)}"
        if limit is not None:
            text += (
                f" ({self.needed_bytes:,} bytes), "
                f"{'more than' if self.over_bytes else 'within'} its budget of "
                f"{format_bytes(limit)} ({limit:,} bytes)"
            )
        return f"{text}: {shown}. The largest at the peak: {self.largest or 'nothing'}."


def _shown(shape: int | tuple[int, ...]) -> str:
    return str(shape) if isinstance(shape, int) else "x".join(map(str, shape))
