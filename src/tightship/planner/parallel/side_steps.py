"""Steps that nobody waits for, run together with one that somebody does."""

from dataclasses import replace

from tightship.planner.schedule import AliasKind, Schedule, Step


def with_side_steps_joined(schedule: Schedule) -> Schedule:
    """A schedule in which gradients of weights are computed beside those of data, in one step.

    A step whose results nobody reads is never known to have ended, so where steps run at once the
    bytes that it reads never come back. It is joined to the next step that reads one of its inputs:
    as frameworks have one backward operator for a layer. What it reads lives until then.

    Steps with views or ties stay alone, and those of which no later step reads an input. None is
    joined to a tied one, which writes over bytes that it might read by another name.

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
    """For each step that nobody waits for a later one that reads an input of it."""
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
    """Steps run one after another as one, the last of which others wait for."""
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
