"""Joins steps whose results no step reads to steps whose results are read."""

from dataclasses import replace

from tightship.planner.schedule import AliasKind, Schedule, Step


def with_side_steps_joined(schedule: Schedule) -> Schedule:
    """Join gradients of weights with gradients of data into one step.

    No later step waits for a step whose results are not read. When steps run at once, it is
    therefore never known to have ended, and the bytes that it reads can never be reused. Such a
    step is joined to the next step that reads one of its inputs, as frameworks have one backward
    operator for a layer. Its inputs live until then.

    Steps with views or ties stay alone, and so do steps whose inputs no later step reads. No step
    is joined to a tied one, because that writes over bytes that the joined step might read under
    another name.

    Complexity: O(values + reads).
    """
    joined = _hosts(schedule)
    guests: dict[int, list[int]] = {}
    for index in range(len(schedule.steps)):
        host = index
        while host in joined:
            host = joined[host]
        guests.setdefault(host, []).append(index)
    groups = [[schedule.steps[index] for index in guests[host]] for host in sorted(guests)]
    return replace(schedule, steps=tuple(map(_together, groups)))


def _hosts(schedule: Schedule) -> dict[int, int]:
    """Map each step that no step waits for to a later step that reads one of its inputs."""
    readers: dict[int, list[int]] = {}
    for index, step in enumerate(schedule.steps):
        if any(alias.kind is AliasKind.TIED for alias in step.aliases):
            continue
        for value in step.reads:
            readers.setdefault(value, []).append(index)
    written = {value for step in schedule.steps for value in step.writes}
    awaited = {value for step in schedule.steps for value in step.reads}
    hosts: dict[int, int] = {}
    for index, step in enumerate(schedule.steps):
        if not awaited.isdisjoint(step.writes):
            continue
        if any(alias.kind is not AliasKind.IN_PLACE for alias in step.aliases):
            continue
        later = [
            reader
            for value in step.reads
            if value in written
            for reader in readers.get(value, ())
            if reader > index
        ]
        if later:
            hosts[index] = min(later)
    return hosts


def _together(steps: list[Step]) -> Step:
    """Join steps that run one after another into one; other steps wait for the last."""
    if len(steps) == 1:
        return steps[0]
    *_, last = steps
    writes = tuple(value for step in steps for value in step.writes)
    reads = dict.fromkeys(value for step in steps for value in step.reads)
    return replace(
        last,
        reads=tuple(value for value in reads if value not in writes),
        writes=writes,
        scratch_bytes=max(step.scratch_bytes for step in steps),
    )
