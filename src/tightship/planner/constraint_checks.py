"""Checks that constraints fit the buffers that they apply to."""

import numpy as np

from tightship.errors import PlanError
from tightship.planner.constraints import BYTES_MAX, COLUMNS, FREE, Constraints, Int64Array


def check_constraints(constraints: Constraints, columns: Int64Array) -> None:
    """Check constraints against buffers.

    Args:
        constraints: The constraints.
        columns: Sizes, start steps, stop steps and alignments of n buffers; shape (4, n).

    Raises:
        PlanError: A column has another length, a pin is misaligned, a gap is not inside its
            lifetime or overlaps another, a buffer is allowed in no bank, or the members of a group
            cannot all be aligned, pinned or in one bank.
    """
    count = columns.shape[1]
    for name in COLUMNS:
        values = getattr(constraints, name)
        if values is not None and len(values) != count:
            raise PlanError(f"`{name}` has {len(values)} entries; there are {count} buffers.")
    if constraints.pinned_offset_bytes is not None:
        _check_pins(constraints.pinned_offset_bytes, columns[3])
    if constraints.gaps is not None:
        _check_gaps(constraints.gaps, columns)
        if constraints.gap_window_bytes is not None:
            _check_windows(constraints.gaps, constraints.gap_window_bytes, columns[0])
    allowed = constraints.allowed_banks
    if allowed is not None:
        if allowed.dtype != np.bool_ or allowed.shape != (count, constraints.bank_count):
            raise PlanError(
                f"`allowed_banks` is {allowed.dtype} of shape {allowed.shape}; it must be bool of "
                f"shape {(count, constraints.bank_count)}."
            )
        for index in np.flatnonzero(~allowed.any(axis=1))[:1]:
            raise PlanError(
                f"Buffer {index} is allowed in no bank; allow it in at least one of the "
                f"{constraints.bank_count} banks."
            )
    if constraints.group is not None:
        _check_groups(constraints, columns)


def _check_pins(pinned: Int64Array, alignment: Int64Array) -> None:
    for index in np.flatnonzero((pinned < FREE) | (pinned > BYTES_MAX))[:1]:
        raise PlanError(
            f"Buffer {index} is pinned to byte {pinned[index]}; a pin is in [0, {BYTES_MAX}], or "
            f"{FREE} for none."
        )
    for index in np.flatnonzero((pinned > 0) & (pinned % alignment != 0))[:1]:
        raise PlanError(
            f"Buffer {index} is pinned to byte {pinned[index]}, which is not a multiple of its "
            f"alignment {alignment[index]}."
        )


def _check_gaps(gaps: Int64Array, columns: Int64Array) -> None:
    buffer, start, stop = gaps.T
    for row in np.flatnonzero((buffer < 0) | (buffer >= columns.shape[1]))[:1]:
        raise PlanError(
            f"A gap names buffer {buffer[row]}; there are {columns.shape[1]} buffers, from 0."
        )
    inside = (columns[1][buffer] <= start) & (start < stop) & (stop <= columns[2][buffer])
    for row in np.flatnonzero(~inside)[:1]:
        lifetime = f"[{columns[1][buffer[row]]}, {columns[2][buffer[row]]})"
        raise PlanError(
            f"Buffer {buffer[row]} has a gap in steps [{start[row]}, {stop[row]}); a gap must hold "
            f"a step and lie inside the lifetime {lifetime}."
        )
    meets = (buffer[1:] == buffer[:-1]) & (start[1:] < stop[:-1])
    for row in np.flatnonzero(meets)[:1]:
        raise PlanError(
            f"Buffer {buffer[row]} has gaps that overlap: one stops at step {stop[row]}, and the "
            f"next starts at step {start[row + 1]}."
        )


def _check_windows(gaps: Int64Array, windows: Int64Array, size: Int64Array) -> None:
    buffer, (bottom, top) = gaps[:, 0], windows.T
    inside = (bottom >= 0) & (bottom <= top) & (top <= size[buffer])
    for row in np.flatnonzero(~inside)[:1]:
        raise PlanError(
            f"Buffer {buffer[row]} keeps bytes [{bottom[row]}, {top[row]}) in a gap; they must lie "
            f"in [0, {size[buffer[row]]})."
        )


def _check_groups(constraints: Constraints, columns: Int64Array) -> None:
    group, offset = constraints.group, constraints.group_offset_bytes
    assert group is not None
    assert offset is not None
    grouped = np.flatnonzero(group != FREE)
    for index in grouped[(group[grouped] < 0)][:1]:
        raise PlanError(f"Buffer {index} is in group {group[index]}; it must be >= 0 or {FREE}.")
    beyond = (offset[grouped] < 0) | (offset[grouped] > BYTES_MAX - columns[0][grouped])
    for index in grouped[beyond][:1]:
        raise PlanError(
            f"Buffer {index} lies {offset[index]} bytes above its group's base; its bytes must lie "
            f"in [0, {BYTES_MAX}]."
        )
    order = grouped[np.argsort(group[grouped], kind="stable")]
    for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        _check_group(constraints, columns[3], members)


def _check_group(constraints: Constraints, alignment: Int64Array, members: Int64Array) -> None:
    offset, pinned = constraints.group_offset_bytes, constraints.pinned_offset_bytes
    assert offset is not None
    if not len(members):
        return
    strictest = members[alignment[members].argmax()]
    needed = -offset[strictest] % alignment[strictest]
    for member in members[(needed + offset[members]) % alignment[members] != 0][:1]:
        raise PlanError(
            f"Buffers {strictest} and {member} of one group lie "
            f"{offset[member] - offset[strictest]} bytes apart; with alignments "
            f"{alignment[strictest]} and {alignment[member]} they cannot both be aligned."
        )
    allowed = constraints.allowed_banks
    if allowed is not None and not allowed[members].all(axis=0).any():
        raise PlanError(
            f"The group of buffer {members[0]} has no bank that is allowed for all its members."
        )
    if pinned is not None:
        fixed = members[pinned[members] != FREE]
        bases = pinned[fixed] - offset[fixed]
        for member in fixed[bases != bases[:1]][:1]:
            raise PlanError(
                f"Buffers {fixed[0]} and {member} of one group are pinned to bytes "
                f"{pinned[fixed[0]]} and {pinned[member]}; in the group they lie "
                f"{offset[member] - offset[fixed[0]]} bytes apart."
            )
        for member, base in zip(fixed[:1], bases[:1], strict=True):
            if (
                base + offset[members].min() < 0
                or (base + offset[strictest]) % alignment[strictest] != 0
            ):
                raise PlanError(
                    f"Buffer {member} is pinned to byte {pinned[member]}; that puts the base of "
                    f"its group at byte {base}, where a member is misaligned or below byte 0."
                )
