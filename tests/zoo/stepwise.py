"""A model run step by step; between steps, arena bytes that no step may read become NaN."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.zoo.arena import NOT_A_NUMBER
from tests.zoo.oracle import Array
from tightship import Model
from tightship.engine.program.program import Space
from tightship.engine.run.executable import Executable, NativeSegment, Segment
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.model import feeds


def run_poisoned(model: Model, inputs: dict[str, Array]) -> dict[str, Array]:
    """The outputs of a run before each of whose steps all bytes are poisoned that it may not read.

    Those are the bytes of the arena outside every buffer that was written before and dies later.
    """
    with model._programs.reserved(model._key, Limits()) as (program, arena):
        executable = program.executable
        fed = feeds.bind(program.lowered, inputs, {})
        room = arena.block.array()
        for step, segment in enumerate(single_steps(executable)):
            room[~readable(executable, step, room.size)] = NOT_A_NUMBER
            alone = replace(executable, segments=(segment,))
            execute(alone, arena, fed.external, fed.objects, Limits())
        return {
            name: fed.objects[name] if o.space is Space.OBJECT else fed.external[o.slot]
            for name, o in program.lowered.outputs.items()
        }


def single_steps(executable: Executable) -> Iterator[Segment]:
    """Segments of one step each."""
    for segment in executable.segments:
        if isinstance(segment, NativeSegment):
            for index in range(segment.first, segment.last):
                yield NativeSegment(index, index + 1)
        else:
            yield segment


def readable(executable: Executable, step: int, size_bytes: int) -> np.ndarray:
    """A flag for each byte: whether a buffer alive since an earlier step, and in `step`, has it."""
    plan = executable.placement.schedule_plan.plan
    problem = plan.problem
    flags = np.zeros(size_bytes, bool)
    alive = (problem.start_step < step) & (step < problem.stop_step)
    for index in np.flatnonzero(alive):
        first = plan.offset_bytes[index]
        flags[first : first + problem.size_bytes[index]] = True
    return flags
