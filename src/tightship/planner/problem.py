"""Defines a problem: buffers to place, with sizes and lifetimes in columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tightship.brief import brief
from tightship.errors import PlanError
from tightship.public_calls import public_methods
from tightship.quantity import parse_bytes

if TYPE_CHECKING:
    from tightship.planner.constraints import Constraints

Int64Array = NDArray[np.int64]

TOTAL_BYTES_MAX = 2**62
"""Limit of the sum of aligned sizes, so that every offset fits int64."""


@brief
@public_methods
@dataclass(frozen=True, slots=True, eq=False, init=False)
class Problem:
    """n buffers to place, each live in the half-open steps `[start_step, stop_step)`.

    Columns are copied and made read-only. Two buffers that are live in a common step must not share
    a byte; an empty buffer shares none. An offset is a multiple of the buffer's `alignment`.

    Attributes:
        size_bytes: Sizes in bytes, at least 0; int64 of shape (n,).
        start_step: First steps of the lifetimes, at least 0; int64 of shape (n,).
        stop_step: First steps after the lifetimes; int64 of shape (n,).
        alignment: Alignments in bytes, powers of two; int64 of shape (n,).
        names: Names for messages and files; None for buffers without names.
        capacity_bytes: Bytes that a plan should stay within, also as text (`512MiB`); None sets no
            limit.
        constraints: Further constraints on plans; None for none.

    Raises:
        InputError: `capacity_bytes` is a text that is not an amount of memory.
        PlanError: A column has another length or type, a size or start is negative, a lifetime is
            empty, an alignment is not a power of two, the sizes add up to 2**62 or more, or the
            constraints do not fit these buffers.
    """

    size_bytes: Int64Array
    start_step: Int64Array
    stop_step: Int64Array
    alignment: Int64Array
    names: Sequence[str] | None
    capacity_bytes: int | None
    constraints: "Constraints | None"

    def __init__(
        self,
        size_bytes: Int64Array,
        start_step: Int64Array,
        stop_step: Int64Array,
        alignment: Int64Array,
        names: Sequence[str] | None = None,
        capacity_bytes: str | int | None = None,
        constraints: "Constraints | None" = None,
    ) -> None:
        if isinstance(capacity_bytes, str):
            capacity_bytes = parse_bytes(capacity_bytes, "capacity_bytes", least=0)
        fields = {
            "size_bytes": _column("size_bytes", size_bytes),
            "start_step": _column("start_step", start_step),
            "stop_step": _column("stop_step", stop_step),
            "alignment": _column("alignment", alignment),
            "names": names,
            "capacity_bytes": capacity_bytes,
            "constraints": constraints,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        counts = {
            "start_step": len(self.start_step),
            "stop_step": len(self.stop_step),
            "alignment": len(self.alignment),
            "names": self.count if self.names is None else len(self.names),
        }
        for column, count in counts.items():
            if count != self.count:
                raise PlanError(
                    f"Column `{column}` has {count} entries; `size_bytes` has {self.count}."
                )
        self._check_buffers()
        if self.capacity_bytes is not None and self.capacity_bytes < 0:
            raise PlanError(f"capacity_bytes is {self.capacity_bytes}; it must be >= 0.")
        if self.constraints is not None:
            from tightship.planner.constraint_checks import check_constraints  # few need it

            check_constraints(self.constraints, self.columns())
            if self.constraints.banks and self.capacity_bytes is not None:
                raise PlanError(
                    f"capacity_bytes is {self.capacity_bytes}, but the problem has banks; give "
                    "each bank its capacity instead."
                )

    def _check_buffers(self) -> None:
        for column in ("size_bytes", "start_step"):
            values = getattr(self, column)
            for index in np.flatnonzero(values < 0)[:1]:
                raise PlanError(
                    f"Buffer {self.label(index)} has {column}={values[index]}; it must be >= 0."
                )
        for index in np.flatnonzero(self.start_step >= self.stop_step)[:1]:
            raise PlanError(
                f"Buffer {self.label(index)} lives in steps [{self.start_step[index]}, "
                f"{self.stop_step[index]}); stop_step must be greater than start_step."
            )
        powers = (self.alignment > 0) & (self.alignment & (self.alignment - 1) == 0)
        for index in np.flatnonzero(~powers)[:1]:
            raise PlanError(
                f"Buffer {self.label(index)} has alignment={self.alignment[index]}; it must be a "
                "power of two."
            )
        self._check_total()

    def _check_total(self) -> None:
        """Add sizes up exactly if a sum of floats cannot exclude an overflow."""
        rough = self.size_bytes.sum(dtype=np.float64) + self.alignment.sum(dtype=np.float64)
        if rough < TOTAL_BYTES_MAX / 2:
            return
        total = 0
        pairs = zip(self.size_bytes.tolist(), self.alignment.tolist(), strict=True)
        for index, (size, alignment) in enumerate(pairs):
            total += size + alignment - 1
            if total >= TOTAL_BYTES_MAX:
                raise PlanError(
                    f"Sizes with padding add up to {total} bytes at buffer {self.label(index)}; "
                    f"they must stay below {TOTAL_BYTES_MAX}."
                )

    if not TYPE_CHECKING:  # a checker of types should know the present names only

        def __getattr__(self, name: str) -> object:
            from tightship.deprecated import old_attribute

            return old_attribute(self, name)

    @property
    def count(self) -> int:
        """Number of buffers."""
        return len(self.size_bytes)

    @property
    def total_bytes(self) -> int:
        """Sum of all sizes: the bytes that a plan without sharing needs, alignment apart."""
        return int(self.size_bytes.sum())

    def label(self, index: int) -> str:
        """Describe a buffer in a message: its index, and its name if it has one."""
        return str(index) if self.names is None else f"{index} `{self.names[index]}`"

    def columns(self) -> Int64Array:
        """Return sizes, starts, stops and alignments as one array of shape (4, n)."""
        return np.stack([self.size_bytes, self.start_step, self.stop_step, self.alignment])

    def live_bytes(self, step_count: int) -> Int64Array:
        """Return the live bytes of each of the steps `[0, step_count)`."""
        change = np.zeros(step_count + 1, np.int64)
        np.add.at(change, np.minimum(self.start_step, step_count), self.size_bytes)
        np.subtract.at(change, np.minimum(self.stop_step, step_count), self.size_bytes)
        return np.cumsum(change)[:step_count]


def _column(name: str, values: Int64Array) -> Int64Array:
    if not isinstance(values, np.ndarray):
        raise PlanError(
            f"Column `{name}` is of the type {type(values).__name__}; it must be an int64 array of "
            "shape (n,)."
        )
    if values.ndim != 1 or (values.dtype != np.int64 and values.size):
        raise PlanError(
            f"Column `{name}` is {values.dtype} of shape {values.shape}; it must be int64 of "
            "shape (n,)."
        )
    column = np.array(values, np.int64)
    column.flags.writeable = False
    return column
