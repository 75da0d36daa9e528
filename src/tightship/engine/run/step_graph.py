"""Dependencies between the native steps of a program, so that independent ones may run at once."""

from tightship._core import NativeStepGraph
from tightship.engine.plan.step_operations import step_operations
from tightship.engine.plan.step_waits import needed
from tightship.engine.program.program import CompiledWork
from tightship.engine.run.executable import Executable, NativeSegment
from tightship.planner.parallel.makespan import urgent_first


def step_graphs(executable: Executable) -> dict[NativeSegment, NativeStepGraph]:
    """Return the minimal dependencies between the steps of each native segment.

    A step waits for the steps that write what it reads, and for those that touch bytes which it
    overwrites, because values reuse bytes of the arena. A Python step waits for all before it. Of
    steps that are ready, that goes first which the most operations wait for.
    """
    steps = executable.placement.lowered.steps
    edges = needed(executable.placement)
    native_of: dict[int, int] = {}
    for index, step in enumerate(steps):
        if isinstance(step.work, CompiledWork):
            native_of[index] = len(native_of)
    inner = [(native_of[a], native_of[b]) for a, b in edges if a in native_of and b in native_of]
    urgent = urgent_first([step_operations(step) for step in steps], edges)
    order = [native_of[index] for index in urgent if index in native_of]
    return {
        segment: NativeStepGraph(
            segment.first,
            segment.last,
            [edge for edge in inner if segment.first <= edge[0] and edge[1] < segment.last],
            [step - segment.first for step in order if segment.first <= step < segment.last],
        )
        for segment in executable.segments
        if isinstance(segment, NativeSegment)
    }
