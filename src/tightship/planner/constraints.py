"""Defines constraints on plans beyond sizes, lifetimes and alignment."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.brief import brief
from tightship.errors import PlanError
from tightship.public_calls import public_methods
from tightship.quantity import parse_bytes

Int64Array = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

FREE = -1
"""Stands for the pin of a buffer without one, and for the group of a buffer in none."""

COLUMNS = ("pinned_offset_bytes", "group", "group_offset_bytes")

BANK_COUNT_MAX = 62
BYTES_MAX = 2**62
STEP_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, init=False)
class Bank:
    """An address space of its own, with offsets from 0.

    Attributes:
        name: Name in messages and files.
        capacity_bytes: Bytes that the bank holds, also as text (`512KiB`); None sets no limit.
        cost_per_byte: Cost of each byte of each buffer placed in the bank, charged once.

    Raises:
        InputError: `capacity_bytes` is a text that is not an amount of memory.
    """

    name: str
    capacity_bytes: int | None
    cost_per_byte: int

    def __init__(
        self, name: str, capacity_bytes: str | int | None = None, cost_per_byte: int = 0
    ) -> None:
        if isinstance(capacity_bytes, str):
            capacity_bytes = parse_bytes(capacity_bytes, "capacity_bytes", least=0)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "capacity_bytes", capacity_bytes)
        object.__setattr__(self, "cost_per_byte", cost_per_byte)


@dataclass(frozen=True, slots=True)
class ForbiddenRange:
    """Bytes of a bank that no buffer may use in some steps; both ranges are half-open."""

    start_byte: int
    stop_byte: int
    start_step: int = 0
    stop_step: int = STEP_MAX
    bank: int = 0


@brief
@public_methods
@dataclass(frozen=True, slots=True, eq=False)
class Constraints:
    """Constraints on the n buffers of a problem; each kind may be left out.

    Attributes:
        pinned_offset_bytes: The offset that a buffer must have, or `FREE`; shape (n,).
        gaps: Steps `[start, stop)` within a lifetime in which the buffer's bytes are free for
            others: rows of buffer, start and stop; shape (g, 3).
        gap_window_bytes: Bytes `[bottom, top)` of the buffer that it keeps during each gap; no
            bytes if the two are equal; shape (g, 2). None frees the whole buffer in all gaps.
        forbidden: Bytes that no buffer may use.
        banks: Address spaces; without any there is one, without limit and without cost.
        allowed_banks: Whether a buffer may lie in a bank; shape (n, banks). None allows all.
        group: A rigid group for each buffer, or `FREE`; shape (n,). Members of a group lie in one
            bank at fixed distances, and may share bytes with each other, because they are views of
            one block of memory or parts of one result.
        group_offset_bytes: Distance of a member above its group's base; shape (n,).
    """

    pinned_offset_bytes: Int64Array | None = None
    gaps: Int64Array | None = None
    forbidden: tuple[ForbiddenRange, ...] = ()
    banks: tuple[Bank, ...] = ()
    allowed_banks: BoolArray | None = None
    group: Int64Array | None = None
    group_offset_bytes: Int64Array | None = None
    gap_window_bytes: Int64Array | None = None

    def __post_init__(self) -> None:
        for name in (*COLUMNS, "gaps", "gap_window_bytes"):
            values = getattr(self, name)
            if values is None:
                continue
            if values.dtype != np.int64 or values.ndim != (1 if name in COLUMNS else 2):
                raise PlanError(
                    f"`{name}` is {values.dtype} of shape {values.shape}; it must be int64 with "
                    f"{1 if name in COLUMNS else 2} dimension(s)."
                )
            object.__setattr__(self, name, _frozen(values))
        if self.allowed_banks is not None:
            object.__setattr__(self, "allowed_banks", _frozen(self.allowed_banks))
        self._sort_gaps()
        if (self.group is None) != (self.group_offset_bytes is None):
            raise PlanError("`group` and `group_offset_bytes` must be given together.")
        self._check_banks()

    @property
    def bank_count(self) -> int:
        """Number of address spaces; 1 if no banks are given."""
        return max(1, len(self.banks))

    def _sort_gaps(self) -> None:
        gaps, windows = self.gaps, self.gap_window_bytes
        if windows is not None and (gaps is None or windows.shape != (len(gaps), 2)):
            raise PlanError(
                f"`gap_window_bytes` has shape {windows.shape}; it must have a row of two for each "
                f"of {0 if gaps is None else len(gaps)} gaps."
            )
        if gaps is None:
            return
        if gaps.shape[1] != 3:
            raise PlanError(f"`gaps` has shape {gaps.shape}; it must be (g, 3).")
        rows = np.lexsort((gaps[:, 1], gaps[:, 0]))
        object.__setattr__(self, "gaps", _frozen(gaps[rows]))
        if windows is not None:
            object.__setattr__(self, "gap_window_bytes", _frozen(windows[rows]))

    def _check_banks(self) -> None:
        if len(self.banks) > BANK_COUNT_MAX:
            raise PlanError(
                f"There are {len(self.banks)} banks; at most {BANK_COUNT_MAX} are supported."
            )
        for bank in self.banks:
            if (bank.capacity_bytes or 0) < 0 or bank.cost_per_byte < 0:
                raise PlanError(
                    f"Bank `{bank.name}` has capacity {bank.capacity_bytes} and cost "
                    f"{bank.cost_per_byte} per byte; neither may be below 0."
                )
        for place in self.forbidden:
            if not 0 <= place.start_byte < place.stop_byte <= BYTES_MAX:
                raise PlanError(
                    f"The forbidden bytes [{place.start_byte}, {place.stop_byte}) must hold a "
                    f"byte and lie in [0, {BYTES_MAX}]."
                )
            if not 0 <= place.start_step < place.stop_step <= STEP_MAX:
                raise PlanError(
                    f"Bytes are forbidden in steps [{place.start_step}, {place.stop_step}); the "
                    f"range must hold a step and lie in [0, {STEP_MAX}]."
                )
            if not 0 <= place.bank < self.bank_count:
                raise PlanError(
                    f"Bytes are forbidden in bank {place.bank}; there are {self.bank_count} banks, "
                    "from 0."
                )


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    column = np.array(values)
    column.flags.writeable = False
    return column
