"""Groups values that share their bytes, because they must or because that was chosen."""

from dataclasses import dataclass, field

from tightship.errors import PlanError
from tightship.planner.schedule import BINDING, Alias, AliasKind, Schedule


@dataclass(slots=True, eq=False)
class AliasGroup:
    """An alias group: values in one buffer, live in `[start_step, stop_step)`.

    The buffer has the size and alignment of the group's largest and strictest value.
    """

    name: str
    start_step: int
    stop_step: int
    size_bytes: int
    alignment: int = 64
    external: bool = False
    is_kept: bool = False
    donated: bool = False
    values: list[int] = field(default_factory=list)


def alias_groups_of(schedule: Schedule) -> list[AliasGroup]:
    """Make the alias group of each value from the aliases that bind: VIEW and TIED.

    Returns:
        The group of each value, by the value's index; members of one group share the object.

    Raises:
        PlanError: An external value is bound to one inside the arena, or a value is TIED to bytes
            that are read later or by another operand.
    """
    last_use = _last_uses(schedule)
    kept = frozenset(schedule.outputs)
    groups = [
        AliasGroup(value.name, 0, last + 1, value.size_bytes, value.alignment, value.external,
             index in kept, value.donated, [index])
        for index, (value, last) in enumerate(zip(schedule.values, last_use, strict=True))
    ]  # fmt: skip
    for index, step in enumerate(schedule.steps):
        for value in step.writes:
            groups[value].start_step = index
        for alias in step.aliases:
            if alias.kind not in BINDING:
                continue
            host, group = groups[alias.input], groups[alias.output]
            if alias.kind is AliasKind.TIED:
                _check_tie(schedule, index, alias, host, last_use)
            if group.external and not host.external:
                raise PlanError(
                    f"Step `{step.name}` binds external `{group.name}` to `{host.name}`, which "
                    f"lies in the arena. Copy `{host.name}`, or make it external."
                )
            merge(groups, host, group)
    return groups


def merge(groups: list[AliasGroup], host: AliasGroup, group: AliasGroup) -> None:
    """Move the values of one alias group into another, in place."""
    host.start_step = min(host.start_step, group.start_step)
    host.stop_step = max(host.stop_step, group.stop_step)
    host.size_bytes = max(host.size_bytes, group.size_bytes)
    host.alignment = max(host.alignment, group.alignment)
    host.is_kept |= group.is_kept
    host.values.extend(group.values)
    for value in group.values:
        groups[value] = host


def _last_uses(schedule: Schedule) -> list[int]:
    """Return the last step that uses each value; for outputs of the schedule its last step."""
    last = [0] * len(schedule.values)
    for index, step in enumerate(schedule.steps):
        for value in step.reads:
            last[value] = index
        for value in step.writes:
            last[value] = index
    for value in schedule.outputs:
        last[value] = len(schedule.steps) - 1
    return last


def _check_tie(
    schedule: Schedule, index: int, alias: Alias, host: AliasGroup, last_use: list[int]
) -> None:
    step = schedule.steps[index]
    for value in host.values:
        outlives = last_use[value] > index or (host.is_kept and not host.external)
        operand = value != alias.input and (value in step.reads or value in step.writes)
        if outlives or operand:
            raise PlanError(
                f"Step `{step.name}` writes `{schedule.values[alias.output].name}` over "
                f"`{schedule.values[alias.input].name}`, but `{schedule.values[value].name}` in "
                f"the same bytes is {'read later' if outlives else 'also its operand'}. Copy "
                f"`{schedule.values[alias.input].name}` first."
            )
