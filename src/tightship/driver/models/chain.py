"""Models with loops and branches: programs that run one after another, as data decide."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from tightship._core import StopFlag
from tightship.driver.memory.mappings import Array
from tightship.driver.nnapi.routine import BranchStage, GraphStage, LoopStage, Routine, Stage
from tightship.errors import DeadlineError
from tightship.graph import Graph
from tightship.model import Model


@dataclass(frozen=True, slots=True)
class Limit:
    """When a run ends, and what each of its loops may take.

    Attributes:
        deadline_ns: On the monotonic clock; None for none.
    """

    stop: StopFlag
    loop_timeout_ns: int
    deadline_ns: int | None = None

    def of_loop(self) -> "Limit":
        """Within a loop that begins now."""
        deadline_ns = time.monotonic_ns() + self.loop_timeout_ns
        if self.deadline_ns is not None:
            deadline_ns = min(deadline_ns, self.deadline_ns)
        return Limit(self.stop, self.loop_timeout_ns, deadline_ns)

    def left_s(self) -> float | None:
        """Seconds that are left; None for any number.

        Raises:
            DeadlineError: None are.
        """
        if self.deadline_ns is None:
            return None
        left_ns = self.deadline_ns - time.monotonic_ns()
        if left_ns <= 0:
            raise DeadlineError("A loop ran longer than its timeout.")
        return left_ns / 1e9


class Chain:
    """A routine with its graphs loaded.

    Attributes:
        input_names, output_names: In order.
        programs: The graphs.
    """

    def __init__(self, routine: Routine, load: Callable[[Graph], Model]) -> None:
        """Load every graph; errors are those of `load`."""
        self.input_names = tuple(tensor.name for tensor in routine.input_tensors)
        self.output_names = tuple(tensor.name for tensor in routine.output_tensors)
        self.programs: tuple[Model, ...] = ()

        def keep(graph: Graph) -> Model:
            self.programs = (*self.programs, load(graph))
            return self.programs[-1]

        with ExitStack() as undo:
            undo.callback(self.close)
            self._first = _Loaded(routine, keep)
            undo.pop_all()

    def run(
        self, inputs: Mapping[str, Array], outputs: Mapping[str, Array], limit: Limit
    ) -> dict[str, Array]:
        """Run it once, as `Model.run` does.

        Raises:
            DeadlineError: A loop ran longer than it may.
            StoppedError: It was stopped.
        """
        made = self._first.follow([inputs[name] for name in self.input_names], limit)
        results = dict(zip(self.output_names, made, strict=True))
        for name, place in outputs.items():
            np.copyto(place, results[name])
            results[name] = place
        return results

    def close(self) -> None:
        """Give all memory back; waits for runs that are going on."""
        for model in self.programs:
            model.close()


Values = dict[int, Array]
"""Arrays by operand."""
Step = Callable[[Values, Limit], None]
"""Adds what a stage gives."""


class _Loaded:
    """A routine whose stages are ready."""

    def __init__(self, routine: Routine, load: Callable[[Graph], Model]) -> None:
        self._inputs, self._outputs = routine.inputs, routine.outputs
        self._constants = {
            index: constant.array().copy() for index, constant in routine.constants.items()
        }
        self._steps = [_step(stage, load) for stage in routine.stages]

    def follow(self, given: Sequence[Array], limit: Limit) -> list[Array]:
        """The outputs for these inputs, both in order."""
        values = self._constants | dict(zip(self._inputs, given, strict=True))
        for step in self._steps:
            step(values, limit)
        return [values[index] for index in self._outputs]


def _step(stage: Stage, load: Callable[[Graph], Model]) -> Step:
    match stage:
        case GraphStage():
            return _program(stage, load(stage.graph))
        case LoopStage():
            return _loop(stage, _Loaded(stage.condition, load), _Loaded(stage.body, load))
        case BranchStage():
            return _branch(stage, _Loaded(stage.when_true, load), _Loaded(stage.when_false, load))


def _program(stage: GraphStage, model: Model) -> Step:
    def step(values: Values, limit: Limit) -> None:
        inputs = {
            name: values[index] for name, index in zip(model.input_names, stage.inputs, strict=True)
        }
        made = model.run(inputs, timeout_s=limit.left_s(), stop=limit.stop)
        values.update(zip(stage.outputs, made.values(), strict=True))

    return step


def _loop(stage: LoopStage, condition: _Loaded, body: _Loaded) -> Step:
    def step(values: Values, limit: Limit) -> None:
        within = limit.of_loop()
        given = [values[index] for index in stage.inputs]
        while condition.follow(given, within)[0].item():
            made = body.follow(given, within)
            given[: len(made)] = made
        values.update(zip(stage.outputs, given, strict=False))

    return step


def _branch(stage: BranchStage, when_true: _Loaded, when_false: _Loaded) -> Step:
    def step(values: Values, limit: Limit) -> None:
        taken = when_true if values[stage.condition].item() else when_false
        made = taken.follow([values[index] for index in stage.inputs], limit)
        values.update(zip(stage.outputs, made, strict=True))

    return step
