"""Cuts a model into consecutive stages whose exact plans fit the budgets of nodes.

The search starts from lower bounds on the plans of all stages. The stages that it chooses are
planned exactly, and it is repeated with their exact bytes until all that it chooses are exact. The
result is then optimal, because no bound of another stage is above its plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike

import numpy as np

from tightship.brief import brief
from tightship.cluster.best_cuts import BUDGETS_MAX, Cuts, best_cuts
from tightship.cluster.cut_table import CutTable, table_of
from tightship.cluster.replica_memory import Shapes, check_exact
from tightship.cluster.stage_origin import Origin, compiled
from tightship.cluster.stage_program import StagePrograms
from tightship.engine.compile.compile_graph import ModelSource
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.plan.placement import memory_plan
from tightship.errors import CapacityError, InputError
from tightship.public_calls import explains_memory
from tightship.quantity import format_bytes, parse_bytes


@brief
@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive steps of a model's program that one node runs.

    Attributes:
        start_step: First step.
        stop_step: Step after the last.
        budget: Index of the budget that it is within.
        budget_bytes: Bytes of that budget.
        received: Names of the values that it receives from earlier stages.
        received_bytes: Total size of these values.
        results: Names of the outputs of the model that it computes.
        plan: Every byte that the stage takes, weights, arena, what crosses, and runtime.
        origin: The model that it is part of.
    """

    start_step: int
    stop_step: int
    budget: int
    budget_bytes: int
    received: tuple[str, ...]
    received_bytes: int
    results: tuple[str, ...]
    plan: MemoryPlan
    origin: Origin = field(repr=False)

    def prepare(self, output: str | PathLike[str]) -> MemoryPlan:
        """Write the stage into a file of its own, which `tightship.load` maps and runs.

        Inputs and outputs are those of the model that its steps touch, and the values that cross
        the cuts, by name: results of the stages, each given to those behind it, are the results of
        the model. A value that crosses in blocks of channels is an array of its bytes.

        Args:
            output: Path of the file to write, by convention `.tship`.

        Returns:
            Plan of a process that loads the file.

        Raises:
            InputError: The model has changed since it was split, or a step cannot be stored.
            OSError: The file cannot be written.
            OutOfMemoryError: Memory to pack the largest weight cannot be allocated.
        """
        from tightship.cluster.stage_file import prepare_stage

        return prepare_stage(self, output)


@brief
@dataclass(frozen=True, slots=True)
class Split:
    """Stages of a model in order.

    Attributes:
        model: Name of the model in reports.
        stages: The stages.
        crossing_bytes: Sum, over all cuts, of the bytes of values that are alive across the cut.
    """

    model: str
    stages: tuple[Stage, ...]
    crossing_bytes: int


@explains_memory("splitting a model")
def split(
    model: ModelSource,
    budgets: Sequence[str | int],
    *,
    shapes: Shapes | None = None,
    threads: int = 1,
) -> Split:
    """Cut a model into stages for nodes of given memory, with the fewest bytes between them.

    Of all cuts of the program's order into consecutive stages, each within the budget of a node of
    its own, the result has the least bytes across cuts, and of those the least largest stage. Nodes
    may stay unused, and stages may use them in any order.

    Args:
        model: Model that is not prepared, as for `tightship.plan`.
        budgets: Memory that each node has for a stage, such as `"300MiB"` or bytes.
        shapes: Shapes for inputs whose dimensions are symbolic.
        threads: Threads of each kernel.

    Raises:
        CapacityError: No such cuts exist, which is proved; the message names the operator that is
            too large alone, or the fewest nodes as large as the largest that suffice.
        FormatError, GraphError: The errors of `tightship.plan`.
        InputError: An error of `tightship.plan`; there are no budgets, or more than 10; or a step
            allocates outside the plan.
    """
    sizes = [parse_bytes(budget) for budget in budgets]
    if not 1 <= len(sizes) <= BUDGETS_MAX:
        raise InputError(f"{len(sizes)} budgets were given; give 1 to {BUDGETS_MAX}.")
    return Splitter.of(model, shapes, threads).split(sizes)


class Splitter:
    """Program with its table of cuts, for any number of sets of budgets."""

    def __init__(self, compiled: CompiledModel, origin: Origin) -> None:
        """Tabulate the cuts of a compiled model.

        Raises:
            InputError: A step allocates outside the plan.
        """
        check_exact(compiled.plan)
        self.name = compiled.name
        self.lowered = compiled.placement.lowered
        self._key = dict(compiled.key)
        self._origin = origin
        self._programs = StagePrograms(self.lowered)
        self._table = table_of(self.lowered)
        self._bytes = self._table.least_bytes.copy()
        self._exact = np.zeros(self._bytes.shape, bool)

    @classmethod
    def of(cls, model: ModelSource, shapes: Shapes | None, threads: int) -> "Splitter":
        """Compile a model, and tabulate its cuts; errors as `split`."""
        origin = Origin.of(model, shapes, threads)
        return cls(compiled(origin), origin)

    @property
    def table(self) -> CutTable:
        """Cuts of the program."""
        return self._table

    def split(self, budgets: Sequence[int]) -> Split:
        """Return the best stages within budgets in bytes, as `split`.

        Raises:
            CapacityError: There are none.
        """
        found = self.cuts(budgets)
        if found is None:
            raise self._refusal(budgets)
        stages = [
            self.stage(pair, budget, budgets[budget])
            for pair, budget in zip(found.stages, found.budgets, strict=True)
        ]
        return Split(self.name, tuple(stages), found.crossing_bytes)

    def cuts(self, budgets: Sequence[int]) -> Cuts | None:
        """Return the best cuts, whose stages are exact; None if there are none."""
        while True:
            found = best_cuts(self._bytes, self._table.crossing_bytes, budgets)
            if found is None or not [self.stage_bytes(*pair) for pair in found.stages
                                     if not self._exact[pair]]:  # fmt: skip
                return found

    def stage_bytes(self, first: int, last: int) -> int:
        """Return the exact bytes of the stage between two cuts, by their indices."""
        if not self._exact[first, last]:
            _, exact = self._programs.placed(self._steps(first, last))
            assert exact >= self._bytes[first, last], (first, last, exact)
            self._bytes[first, last] = exact
            self._exact[first, last] = True
        return int(self._bytes[first, last])

    def _steps(self, first: int, last: int) -> tuple[int, int]:
        return int(self._table.cuts[first]), int(self._table.cuts[last])

    def stage(self, pair: tuple[int, int], budget: int, budget_bytes: int) -> Stage:
        """Return the stage between two cuts, by their indices."""
        steps = self._steps(*pair)
        placement, total = self._programs.placed(steps)
        tensors = placement.weights_bytes + placement.arena_bytes + placement.io_bytes
        name = f"{self.name}, steps {steps[0]} to {steps[1] - 1}"
        plan = memory_plan(placement, name, total - tensors, self._key)
        own = placement.lowered
        received = tuple([name for name in own.inputs if name not in self.lowered.inputs])
        crossing = sum(own.slots[own.inputs[name].slot].size_bytes for name in received)
        results = tuple([name for name in self.lowered.outputs if name in own.outputs])
        return Stage(*steps, budget, budget_bytes, received, crossing, results, plan, self._origin)

    def _refusal(self, budgets: Sequence[int]) -> CapacityError:
        largest = max(budgets)
        alone = [self.stage_bytes(index, index + 1) for index in range(len(self._table.cuts) - 1)]
        needed = max(alone)
        shown = ", ".join(format_bytes(budget) for budget in budgets)
        text = f"`{self.name}` cannot be cut into stages for nodes of {shown}"
        if needed > largest:
            steps = self._steps(alone.index(needed), alone.index(needed) + 1)
            text += (
                f": {self._described(steps)} needs {format_bytes(needed)} ({needed} bytes) alone."
            )
            return CapacityError(text, needed_bytes=needed, limit_bytes=largest)
        for count in range(1, BUDGETS_MAX + 1):
            if self.cuts([largest] * count) is not None:
                text += f"; {count} nodes of {format_bytes(largest)} would hold it."
                return CapacityError(text, needed_bytes=count * largest, limit_bytes=sum(budgets))
        text += f", nor for {BUDGETS_MAX} nodes of {format_bytes(largest)}."
        return CapacityError(text, needed_bytes=sum(alone), limit_bytes=sum(budgets))

    def _described(self, steps: tuple[int, int]) -> str:
        start, stop = steps
        sizes: Mapping[int, int] = {
            index: sum(operand.size_bytes for operand in (*step.reads, *step.writes))
            for index, step in enumerate(self.lowered.steps[start:stop], start)
        }
        step = self.lowered.steps[max(sizes, key=lambda index: sizes[index])]
        joined = f" with the {stop - start - 1} steps that share its bytes" * (stop - start > 1)
        return f"`{step.name}` ({step.operator}){joined}"
