"""Chooses optional aliases: values that may share a buffer, where that raises no peak."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from tightship.planner.alias_group import AliasGroup, merge
from tightship.planner.problem import Int64Array
from tightship.planner.schedule import Alias, AliasKind, Schedule


@dataclass(frozen=True, slots=True)
class Chosen:
    """Optional aliases that were taken, in the order of their steps.

    Attributes:
        in_place: The IN_PLACE aliases that were taken.
        parts: The PART aliases that were taken.
        inside: Bytes between the start of an alias group and a value of it, where these are not 0.
    """

    in_place: tuple[Alias, ...] = ()
    parts: tuple[Alias, ...] = ()
    inside: Mapping[int, int] = field(default_factory=dict)


NOTHING = Chosen()


def choose(schedule: Schedule, groups: list[AliasGroup], without: Collection[Alias] = ()) -> Chosen:
    """Merge alias groups along the IN_PLACE and PART aliases that are safe and worth taking.

    An alias is safe if no later step reads the input's bytes and no other operand of the step lies
    in them. Aliases that cost nothing are taken first: those between groups of one size, and those
    over donated bytes. An alias between groups of different sizes costs bytes in the steps where
    only the smaller group would be live, so it is taken only if the peak of live bytes falls or
    stays. The same holds for the parts of an output, which reserve the whole output from the first
    part on.

    Returns:
        The aliases that were taken.

    Complexity: O(values + reads), and O(span) for each alias between groups of different sizes.
    """
    _, chosen = choose_in_turn(schedule, groups, without)
    return chosen


def choose_in_turn(
    schedule: Schedule, groups: list[AliasGroup], without: Collection[Alias] = ()
) -> Iterator[Chosen]:
    """Run `choose` in two stages: yield the choice of free aliases, then the choice of all."""
    choice = _Choice(schedule, groups, frozenset(without))
    choice.take_free()
    yield choice.chosen()
    choice.lower_peak()
    choice.take_within(choice.peak_bytes)
    yield choice.chosen()


class _Choice:
    """Alias groups, the live bytes of each step, and the aliases taken so far."""

    def __init__(
        self, schedule: Schedule, groups: list[AliasGroup], without: frozenset[Alias]
    ) -> None:
        self.schedule = schedule
        self.groups = groups
        self.load = _load_bytes(schedule, groups)
        self.taken: list[tuple[int, Alias]] = []
        self.inside: dict[int, int] = {}
        self._overwrites: dict[AliasGroup, tuple[int, ...]] = {}
        for index, step in enumerate(schedule.steps):
            for alias in step.aliases:
                if alias.kind is AliasKind.TIED:
                    self._overwrite(groups[alias.output], index)
        self._without = without
        self._done: set[int] = set()

    @property
    def peak_bytes(self) -> int:
        """Largest live bytes of any step."""
        return int(self.load.max(initial=0))

    def chosen(self) -> Chosen:
        """Return the aliases taken so far, in the order of their steps."""
        taken = [alias for _, alias in sorted(self.taken, key=lambda pair: pair[0])]
        return Chosen(
            tuple(alias for alias in taken if alias.kind is AliasKind.IN_PLACE),
            tuple(alias for alias in taken if alias.kind is AliasKind.PART),
            dict(self.inside),
        )

    def take_free(self) -> None:
        """Take aliases that raise no step's live bytes."""
        for index in range(len(self.schedule.steps)):
            for alias in self._offered(index):
                host, group = self._alias_groups_of(alias)
                if (host.external or host.size_bytes == group.size_bytes) and self._holds(
                    index, alias
                ):
                    self._take(index, alias)

    def lower_peak(self) -> None:
        """Take aliases at peak steps, while each lowers the peak or the count of peak steps."""
        while self._lower_once():
            pass

    def take_within(self, limit: int) -> None:
        """Take aliases that leave every step's live bytes at `limit` or below."""
        for index in range(len(self.schedule.steps)):
            # The alias whose sizes differ least comes first: it adds the fewest bytes elsewhere.
            for alias in sorted(self._offered(index), key=self._growth):
                if self._holds(index, alias):
                    span, change = self._change(alias)
                    if int((self.load[span] + change).max()) <= limit:
                        self._take(index, alias)
            for parts in self._parts(index):
                span, change = self._parts_change(parts)
                if int((self.load[span] + change).max()) <= limit:
                    self._take_parts(index, parts)

    def _lower_once(self) -> bool:
        for index in np.flatnonzero(self.load == self.peak_bytes).tolist():
            for alias in sorted(self._offered(index), key=self._shared, reverse=True):
                if self._holds(index, alias):
                    span, change = self._change(alias)
                    if self._helps(span, change):
                        self._take(index, alias)
                        return True
            for parts in self._parts(index):
                span, change = self._parts_change(parts)
                if self._helps(span, change):
                    self._take_parts(index, parts)
                    return True
        return False

    def _helps(self, span: slice, change: Int64Array) -> bool:
        """Whether a change lowers the number of steps at the peak without raising the peak."""
        peak, before, after = self.peak_bytes, self.load[span], self.load[span] + change
        return bool(after.max() <= peak and (after == peak).sum() < (before == peak).sum())

    def _offered(self, index: int) -> Iterator[Alias]:
        for alias in self.schedule.steps[index].aliases:
            if (
                alias.kind is AliasKind.IN_PLACE
                and alias.output not in self._done
                and alias not in self._without
            ):
                yield alias

    def _alias_groups_of(self, alias: Alias) -> tuple[AliasGroup, AliasGroup]:
        return self.groups[alias.input], self.groups[alias.output]

    def _growth(self, alias: Alias) -> int:
        host, group = self._alias_groups_of(alias)
        return abs(group.size_bytes - host.size_bytes)

    def _shared(self, alias: Alias) -> int:
        host, group = self._alias_groups_of(alias)
        return min(host.size_bytes, group.size_bytes)

    def _holds(self, index: int, alias: Alias) -> bool:
        """Whether step `index` is the only and last user of the bytes of an alias' input."""
        host, group = self._alias_groups_of(alias)
        step = self.schedule.steps[index]
        return (
            alias.output not in self._done
            and alias.input not in self.inside
            and alias.output not in self.inside
            and group.start_step == index
            and not group.external
            and (not host.external or _holds_donated(host, group))
            and not host.is_kept
            and host.stop_step == index + 1
            and all(self.groups[value] is not host for value in step.writes)
            and all(v == alias.input or self.groups[v] is not host for v in step.reads)
        )

    def _change(self, alias: Alias) -> tuple[slice, Int64Array]:
        """Return the steps that an alias changes, and the bytes that it adds to each."""
        host, group = self._alias_groups_of(alias)
        start, at, stop = host.start_step, group.start_step, group.stop_step
        if host.external:
            return slice(at, stop), np.full(stop - at, -group.size_bytes)
        change = np.zeros(stop - start, np.int64)
        # The merged group has the larger size for the whole span. Before `at` only the input was
        # live, after it only the output, and at `at` both, of which one copy now suffices.
        change[: at - start] = max(0, group.size_bytes - host.size_bytes)
        change[at - start] = -min(host.size_bytes, group.size_bytes)
        change[at - start + 1 :] = max(0, host.size_bytes - group.size_bytes)
        return slice(start, stop), change

    def _take(self, index: int, alias: Alias) -> None:
        host, group = self._alias_groups_of(alias)
        if not host.external and host.size_bytes == group.size_bytes:
            self.load[index] -= group.size_bytes
        else:
            span, change = self._change(alias)
            self.load[span] += change
        merge(self.groups, host, group)
        self._overwrite(host, index, *self._overwrites.get(group, ()))
        self._done.add(alias.output)
        self.taken.append((index, alias))

    def _parts(self, index: int) -> Iterator[list[Alias]]:
        """Yield, for each output of a step, the inputs that can be written straight into it."""
        offered: dict[int, list[Alias]] = {}
        for alias in self.schedule.steps[index].aliases:
            if alias.kind is AliasKind.PART and alias not in self._without:
                offered.setdefault(alias.output, []).append(alias)
        for output, parts in offered.items():
            whole = self.groups[output]
            first_of: dict[AliasGroup, Alias] = {}
            for part in parts:
                if self._is_apart(index, part, whole):
                    first_of.setdefault(self.groups[part.input], part)
            if output not in self._done and whole.start_step == index and first_of:
                yield list(first_of.values())

    def _overwrite(self, group: AliasGroup, *steps: int) -> None:
        self._overwrites[group] = (*self._overwrites.get(group, ()), *steps)

    def _is_apart(self, index: int, part: Alias, whole: AliasGroup) -> bool:
        """Whether a part has an alias group of its own that fits its position inside the whole.

        No step may write over the part after it has become one, or over the whole while the part
        lives.
        """
        group = self.groups[part.input]
        if max(self._overwrites.get(group, ()), default=-1) >= index:
            return False
        return (
            all(step >= group.stop_step for step in self._overwrites.get(whole, ()))
            and group is not whole
            and not group.external
            and not whole.external
            and part.input not in self.inside
            and group.size_bytes == self.schedule.values[part.input].size_bytes
            and self._place(part) % group.alignment == 0
        )

    def _place(self, part: Alias) -> int:
        """Return the bytes between the start of the whole's alias group and a part."""
        return self.inside.get(part.output, 0) + part.offset_bytes

    def _parts_change(self, parts: list[Alias]) -> tuple[slice, Int64Array]:
        whole = self.groups[parts[0].output]
        groups = [whole, *(self.groups[part.input] for part in parts)]
        start = min(group.start_step for group in groups)
        stop = max(group.stop_step for group in groups)
        change = np.full(stop - start, whole.size_bytes)
        for group in groups:
            change[group.start_step - start : group.stop_step - start] -= group.size_bytes
        return slice(start, stop), change

    def _take_parts(self, index: int, parts: list[Alias]) -> None:
        span, change = self._parts_change(parts)
        self.load[span] += change
        for part in parts:
            group, place = self.groups[part.input], self._place(part)
            for value in group.values if place else ():
                self.inside[value] = self.inside.get(value, 0) + place
            whole = self.groups[part.output]
            merge(self.groups, whole, group)
            self._overwrite(whole, *self._overwrites.get(group, ()))
            self.taken.append((index, part))
        self._done.add(parts[0].output)


def _holds_donated(host: AliasGroup, group: AliasGroup) -> bool:
    return (
        host.donated and group.size_bytes <= host.size_bytes and group.alignment <= host.alignment
    )


def _load_bytes(schedule: Schedule, groups: list[AliasGroup]) -> Int64Array:
    """Return the live bytes of each step, scratch included."""
    change = [0] * (len(schedule.steps) + 1)
    written = dict.fromkeys(groups[value] for step in schedule.steps for value in step.writes)
    for group in written:
        if not group.external:
            change[group.start_step] += group.size_bytes
            change[group.stop_step] -= group.size_bytes
    load = np.cumsum(np.array(change[:-1], np.int64))
    return load + np.array([step.scratch_bytes for step in schedule.steps], np.int64)
