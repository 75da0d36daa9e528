"""Models with loops and branches: programs run in a sequence that depends on data."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from tightship._core import StopFlag
from tightship.driver.memory.mappings import Array
from tightship.driver.nnapi.routine import (
    BranchStage,
    DeferredRoutine,
    DeferredStage,
    GraphStage,
    LoopStage,
    Routine,
    Stage,
)
from tightship.driver.types.dimensions import Dimensions, combine
from tightship.driver.types.status import failure
from tightship.errors import DeadlineError
from tightship.graph import Graph
from tightship.model import Model


@dataclass(frozen=True, slots=True)
class Limit:
    """Limits of a run and of each of its loops.

    Attributes:
        deadline_ns: Time on the monotonic clock; None for no deadline.
    """

    stop: StopFlag
    loop_timeout_ns: int
    deadline_ns: int | None = None

    def of_loop(self) -> "Limit":
        """Return the limits within a loop that begins now."""
        deadline_ns = time.monotonic_ns() + self.loop_timeout_ns
        if self.deadline_ns is not None:
            deadline_ns = min(deadline_ns, self.deadline_ns)
        return Limit(self.stop, self.loop_timeout_ns, deadline_ns)

    def left_s(self) -> float | None:
        """Return the seconds left; None for no limit.

        Raises:
            DeadlineError: The time is over.
        """
        if self.deadline_ns is None:
            return None
        left_ns = self.deadline_ns - time.monotonic_ns()
        if left_ns <= 0:
            raise DeadlineError("A loop ran longer than its timeout.")
        return left_ns / 1e9


Load = Callable[[Graph], Model]
"""Loads a graph."""
RunDeferred = Callable[[DeferredRoutine, Sequence[Array], Limit], list[Array]]
"""Runs a deferred routine, translated for the dimensions of its inputs."""


class SubgraphSequence:
    """Routine with its graphs loaded.

    Attributes:
        input_names, output_names: Names in order.
        programs: Loaded graphs, without those of deferred routines.
    """

    def __init__(self, routine: Routine, load: Load, run_deferred: RunDeferred) -> None:
        """Load every graph; raises what `load` raises."""
        self.input_names = tuple(tensor.name for tensor in routine.input_tensors)
        self.output_names = tuple(f"operand{index}" for index in routine.outputs)
        self.programs: tuple[Model, ...] = ()

        def keep(graph: Graph) -> Model:
            self.programs = (*self.programs, load(graph))
            return self.programs[-1]

        with ExitStack() as undo:
            undo.callback(self.close)
            self._first = _Loaded(routine, keep, run_deferred)
            undo.pop_all()

    def run(
        self, inputs: Mapping[str, Array], outputs: Mapping[str, Array], limit: Limit
    ) -> dict[str, Array]:
        """Run once, like `Model.run`.

        Raises:
            DeadlineError: A loop exceeded its timeout.
            DriverError: GENERAL_FAILURE: a result has dimensions other than declared.
            StoppedError: The run was stopped.
        """
        made = self._first.follow([inputs[name] for name in self.input_names], limit)
        results = dict(zip(self.output_names, made, strict=True))
        for name, place in outputs.items():
            check_made(results[name], place.shape)
            np.copyto(place, results[name])
            results[name] = place
        return results

    def close(self) -> None:
        """Wait for current runs and free all memory."""
        for model in self.programs:
            model.close()


Values = dict[int, Array]
"""Arrays by operand."""
Step = Callable[[Values, Limit], None]
"""Runs a stage and adds its outputs to the values."""
Follow = Callable[[Sequence[Array], Limit], list[Array]]
"""Computes outputs from inputs, both in order."""


class _Loaded:
    def __init__(self, routine: Routine, load: Load, run_deferred: RunDeferred) -> None:
        self._inputs, self._outputs = routine.inputs, routine.outputs
        self._constants = {
            index: constant.array().copy() for index, constant in routine.constants.items()
        }
        self._steps = [_step(stage, load, run_deferred) for stage in routine.stages]

    def follow(self, given: Sequence[Array], limit: Limit) -> list[Array]:
        """Return the outputs for these inputs, both in order."""
        values = self._constants | dict(zip(self._inputs, given, strict=True))
        for step in self._steps:
            step(values, limit)
        return [values[index] for index in self._outputs]


def _step(stage: Stage, load: Load, run_deferred: RunDeferred) -> Step:
    def follow(routine: Routine | DeferredRoutine) -> Follow:
        if isinstance(routine, DeferredRoutine):
            return partial(run_deferred, routine)
        return _Loaded(routine, load, run_deferred).follow

    match stage:
        case GraphStage():
            return _program(stage, load(stage.graph))
        case LoopStage():
            return _loop(stage, follow(stage.condition), follow(stage.body))
        case BranchStage():
            return _branch(stage, follow(stage.when_true), follow(stage.when_false))
        case DeferredStage():
            return _late(stage, follow(stage.rest))


def _program(stage: GraphStage, model: Model) -> Step:
    def step(values: Values, limit: Limit) -> None:
        inputs = {
            name: values[index] for name, index in zip(model.input_names, stage.inputs, strict=True)
        }
        made = model.run(inputs, timeout_s=limit.left_s(), stop=limit.stop)
        values.update(zip(stage.outputs, made.values(), strict=True))

    return step


def _loop(stage: LoopStage, condition: Follow, body: Follow) -> Step:
    def step(values: Values, limit: Limit) -> None:
        within = limit.of_loop()
        given = [values[index] for index in stage.inputs]
        while _holds(condition(given, within)[0]):
            made = body(given, within)
            given[: len(made)] = made
        _add(values, stage, given)

    return step


def _branch(stage: BranchStage, when_true: Follow, when_false: Follow) -> Step:
    def step(values: Values, limit: Limit) -> None:
        taken = when_true if values[stage.condition].item() else when_false
        _add(values, stage, taken([values[index] for index in stage.inputs], limit))

    return step


def _late(stage: DeferredStage, rest: Follow) -> Step:
    def step(values: Values, limit: Limit) -> None:
        made = rest([values[index] for index in stage.inputs], limit)
        values.update(zip(stage.outputs, made, strict=True))

    return step


def _add(values: Values, stage: LoopStage | BranchStage, made: Sequence[Array]) -> None:
    for index, declared, value in zip(stage.outputs, stage.declared, made, strict=False):
        check_made(value, declared)
        values[index] = value


def _holds(made: Array) -> bool:
    """Return the value of a condition.

    Raises:
        DriverError: GENERAL_FAILURE: it does not have one element.
    """
    check_made(made, (1,))
    return bool(made.item())


def check_made(made: Array, declared: Dimensions) -> None:
    """Check the dimensions of a result.

    Raises:
        DriverError: GENERAL_FAILURE: they contradict the declared ones.
    """
    if combine(declared, made.shape) is None:
        raise failure(
            f"A result has dimensions {list(made.shape)}; the model declares {list(declared)}."
        )
