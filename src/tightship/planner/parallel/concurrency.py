"""Describes a plan for several workers beside the plans that it was chosen from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """A plan, and how far its steps can run at once.

    Attributes:
        name: When a step may begin.
        arena_bytes: Size of the arena.
        added_edges: Number of waits that the plan adds to those of values.
        longest_chain: Steps of the longest chain in which each waits for the one before.
        operations: Operations until the last step has ended, if every worker does one at a time.
    """

    name: str
    arena_bytes: int
    added_edges: int
    longest_chain: int
    operations: int


@dataclass(frozen=True, slots=True)
class Concurrency:
    """The plan chosen for a number of workers, and what it costs.

    Attributes:
        workers: Steps that may run at once.
        choices: Plans, the one for steps that run one after another first.
        chosen: Index of the chosen plan among them.
        edges: Waits that the chosen plan adds: a step that ends, and one that then may begin.
        operations: Operations of all steps, on one worker.
        bound_bytes: Size that the arena was not to exceed; None for no bound.
    """

    workers: int
    choices: tuple[PlanChoice, ...]
    chosen: int
    edges: tuple[tuple[int, int], ...]
    operations: int
    bound_bytes: int | None = None

    @property
    def plan(self) -> PlanChoice:
        """The chosen plan."""
        return self.choices[self.chosen]

    @property
    def added_bytes(self) -> int:
        """Bytes of the arena beyond those of the plan for one worker."""
        return self.plan.arena_bytes - self.choices[0].arena_bytes

    def speedup_of(self, choice: PlanChoice) -> float:
        """Return the throughput by operations over one worker's; 1 for a program without any."""
        return self.operations / choice.operations if choice.operations else 1.0
