"""Verifies constraints. It shares no code with any solver."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightship._core import first_overlap
from tightship.errors import InvalidPlanError
from tightship.planner.constraints import FREE, Constraints
from tightship.planner.problem import Int64Array, Problem

Span = tuple[int, int]
"""A half-open range `[start, stop)` of bytes or steps."""


def collision(
    problem: Problem, buffers: tuple[int, int], of_bytes: Span, of_steps: Span
) -> InvalidPlanError:
    """Build the error for two buffers that share bytes `of_bytes` in steps `of_steps`."""
    one, other = sorted(buffers)
    return InvalidPlanError(
        f"Buffers {problem.label(one)} and {problem.label(other)} overlap: bytes "
        f"[{of_bytes[0]}, {of_bytes[1]}) in steps [{of_steps[0]}, {of_steps[1]})."
    )


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Offsets of n buffers, and their banks if there are banks."""

    offset_bytes: Int64Array
    bank: Int64Array | None

    def bank_of(self, buffer: int) -> int:
        """Return the bank of a buffer; 0 without banks."""
        return 0 if self.bank is None else int(self.bank[buffer])


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes [bottom, top) of a bank in steps [start, stop), with the buffer that owns them."""

    bank: int
    start: int
    stop: int
    bottom: int
    top: int
    buffer: int


def verify_constraints(problem: Problem, constraints: Constraints, places: Places) -> None:
    """Check that a plan satisfies constraints, and that no two buffers share a byte in a step.

    Members of one group may share bytes, and a buffer keeps its window during its gaps.

    Raises:
        InvalidPlanError: A buffer is not at its pin, in a bank that is not allowed, or in forbidden
            bytes, a group does not keep its distances, or two buffers overlap.
    """
    _verify_banks(problem, constraints, places)
    if constraints.pinned_offset_bytes is not None:
        pinned = constraints.pinned_offset_bytes
        for index in np.flatnonzero((pinned != FREE) & (pinned != places.offset_bytes))[:1]:
            raise InvalidPlanError(
                f"Buffer {problem.label(index)} is pinned to byte {pinned[index]}; the plan has it "
                f"at {places.offset_bytes[index]}."
            )
    if constraints.group is not None:
        _verify_groups(problem, constraints, places)
    pieces = _pieces(problem, constraints, places)
    _verify_forbidden(problem, constraints, pieces)
    _verify_disjoint(problem, constraints, pieces)


def _verify_banks(problem: Problem, constraints: Constraints, places: Places) -> None:
    if (places.bank is None) == bool(constraints.banks):
        raise InvalidPlanError(
            f"The problem has {len(constraints.banks)} banks; the plan names "
            f"{'no bank' if places.bank is None else 'a bank for each buffer'}."
        )
    if places.bank is None:
        return
    if places.bank.shape != (problem.count,):
        raise InvalidPlanError(
            f"The plan has banks of shape {places.bank.shape}; there are {problem.count} buffers."
        )
    for index in np.flatnonzero((places.bank < 0) | (places.bank >= len(constraints.banks)))[:1]:
        raise InvalidPlanError(
            f"Buffer {problem.label(index)} is in bank {places.bank[index]}; there are "
            f"{len(constraints.banks)} banks."
        )
    if constraints.allowed_banks is None:
        return
    allowed = constraints.allowed_banks[np.arange(problem.count), places.bank]
    for index in np.flatnonzero(~allowed)[:1]:
        fine = np.flatnonzero(constraints.allowed_banks[index])
        names = ", ".join(f"`{constraints.banks[bank].name}`" for bank in fine)
        raise InvalidPlanError(
            f"Buffer {problem.label(index)} is in bank "
            f"`{constraints.banks[int(places.bank[index])].name}`; it is allowed in {names}."
        )


def _verify_groups(problem: Problem, constraints: Constraints, places: Places) -> None:
    assert constraints.group is not None
    assert constraints.group_offset_bytes is not None
    first: dict[int, int] = {}
    for member in np.flatnonzero(constraints.group != FREE).tolist():
        other = first.setdefault(int(constraints.group[member]), member)
        apart = constraints.group_offset_bytes[member] - constraints.group_offset_bytes[other]
        actual = places.offset_bytes[member] - places.offset_bytes[other]
        if apart != actual:
            raise InvalidPlanError(
                f"Buffers {problem.label(other)} and {problem.label(member)} are of one group and "
                f"must lie {apart} bytes apart; the plan has them {actual} apart."
            )
        if places.bank_of(member) != places.bank_of(other):
            raise InvalidPlanError(
                f"Buffers {problem.label(other)} and {problem.label(member)} are of one group; the "
                f"plan has them in banks {places.bank_of(other)} and {places.bank_of(member)}."
            )


def _pieces(problem: Problem, constraints: Constraints, places: Places) -> list[_Piece]:
    """Return each interval in which a buffer has bytes: all of them, or its window in a gap."""
    gaps: dict[int, list[tuple[int, int, int, int]]] = {}
    if constraints.gaps is not None:
        windows = constraints.gap_window_bytes
        kept = [[0, 0]] * len(constraints.gaps) if windows is None else windows.tolist()
        for (buffer, *steps), window in zip(constraints.gaps.tolist(), kept, strict=True):
            gaps.setdefault(buffer, []).append((*steps, *window))
    pieces = []
    for buffer in np.flatnonzero(problem.size_bytes).tolist():
        size, begin = int(problem.size_bytes[buffer]), int(problem.start_step[buffer])
        intervals = []
        for start, stop, bottom, top in sorted(gaps.get(buffer, [])):
            intervals += [(begin, start, 0, size), (start, stop, bottom, top)]
            begin = stop
        intervals.append((begin, int(problem.stop_step[buffer]), 0, size))
        bank, offset = places.bank_of(buffer), int(places.offset_bytes[buffer])
        pieces += [
            _Piece(bank, start, stop, offset + bottom, offset + top, buffer)
            for start, stop, bottom, top in intervals
            if start < stop and bottom < top
        ]
    return pieces


def _verify_forbidden(problem: Problem, constraints: Constraints, pieces: list[_Piece]) -> None:
    for place in constraints.forbidden:
        for piece in pieces:
            start, stop = max(piece.start, place.start_step), min(piece.stop, place.stop_step)
            bottom, top = max(piece.bottom, place.start_byte), min(piece.top, place.stop_byte)
            if piece.bank == place.bank and start < stop and bottom < top:
                raise InvalidPlanError(
                    f"Buffer {problem.label(piece.buffer)} uses forbidden bytes "
                    f"[{bottom}, {top}) in steps [{start}, {stop})."
                )


def _verify_disjoint(problem: Problem, constraints: Constraints, pieces: list[_Piece]) -> None:
    """Compare pieces; overlapping pieces of one group count as one."""
    group = constraints.group
    parts: dict[int, list[_Piece]] = {}
    alone: list[_Piece] = []
    for piece in pieces:
        if group is None or group[piece.buffer] == FREE:
            alone.append(piece)
        else:
            parts.setdefault(int(group[piece.buffer]), []).append(piece)
    every = alone + [one for members in parts.values() for one in _merged(members)]
    for bank in range(constraints.bank_count):
        inside = [piece for piece in every if piece.bank == bank]
        columns = [[piece.top - piece.bottom for piece in inside]]
        columns += [[piece.start for piece in inside], [piece.stop for piece in inside]]
        columns += [[piece.bottom for piece in inside]]
        overlap = first_overlap(np.array(columns, np.int64))
        if overlap is not None:
            raise _shared(problem, pieces, (inside[overlap[0]], inside[overlap[1]]))


def _merged(members: list[_Piece]) -> list[_Piece]:
    """Cut pieces so that they are disjoint and cover the same bytes."""
    steps = sorted({step for piece in members for step in (piece.start, piece.stop)})
    merged: list[_Piece] = []
    for start, stop in pairwise(steps):
        top = -1
        for piece in sorted(members, key=lambda one: one.bottom):
            if piece.start <= start and stop <= piece.stop and piece.top > top:
                bottom = max(piece.bottom, top)
                merged.append(_Piece(piece.bank, start, stop, bottom, piece.top, piece.buffer))
                top = piece.top
    return merged


def _shared(
    problem: Problem, pieces: list[_Piece], overlap: tuple[_Piece, _Piece]
) -> InvalidPlanError:
    one, other = overlap
    start = max(one.start, other.start)
    whole = [
        next(
            piece
            for piece in pieces
            if piece.buffer == part.buffer and piece.start <= start < piece.stop
        )
        for part in overlap
    ]
    return collision(
        problem,
        (one.buffer, other.buffer),
        (max(piece.bottom for piece in whole), min(piece.top for piece in whole)),
        (max(piece.start for piece in whole), min(piece.stop for piece in whole)),
    )
