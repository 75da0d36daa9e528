"""What the runs of one model take of arenas that are not its own, within its budget."""

import threading
import time
from dataclasses import dataclass, field

from tightship.errors import InputError

FIRST_WAIT_S, LONGEST_WAIT_S = 1e-4, 4e-3
"""How soon a run looks again for what nobody tells it of, at first and at last."""


@dataclass(slots=True)
class Admission:
    """Bytes that runs have booked; at no return of `book` more than the budget then.

    Attributes:
        budget_bytes: None for no limit.
        arenas_bytes: Of arenas, now.
        peak_bytes: The most that was ever booked of arenas.
        is_closed: Nothing more is booked.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    budget_bytes: int | None = None
    arenas_bytes: int = 0
    peak_bytes: int = 0
    is_closed: bool = False
    _beside_bytes: int = 0

    def book(self, needed_bytes: int, beside_bytes: int) -> bool:
        """Book an arena and what a run takes beside it; whether the budget has room for both.

        Raises:
            InputError: It is closed.
        """
        with self.lock:
            if self.is_closed:
                raise InputError("The model was closed; load it again to run it.")
            after = self.arenas_bytes + self._beside_bytes + needed_bytes + beside_bytes
            if self.budget_bytes is not None and after > self.budget_bytes:
                return False
            self.arenas_bytes += needed_bytes
            self._beside_bytes += beside_bytes
            self.peak_bytes = max(self.peak_bytes, self.arenas_bytes)
            return True

    def cancel(self, needed_bytes: int, beside_bytes: int) -> None:
        """Give back what was booked."""
        with self.lock:
            self.arenas_bytes -= needed_bytes
            self._beside_bytes -= beside_bytes

    @property
    def fits(self) -> bool:
        """Whether what is booked is within the budget."""
        with self.lock:
            budget = self.budget_bytes
            return budget is None or self.arenas_bytes + self._beside_bytes <= budget

    def forked(self) -> None:
        """Runs of the parent's threads are not the child's."""
        self.arenas_bytes = self._beside_bytes = 0

    def end(self) -> None:
        """Book nothing more."""
        with self.lock:
            self.is_closed = True

    def close(self) -> None:
        """`end`, and wait until all is given back."""
        self.end()
        wait_s = FIRST_WAIT_S
        while self.arenas_bytes:
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)


@dataclass(slots=True, eq=False)
class AdmittedBackings:
    """A model's use of rooms that are not its own, by what its runs have booked."""

    _admission: Admission = field(default_factory=Admission, init=False)

    @property
    def lock(self) -> threading.RLock:
        """Free while the process forks."""
        return self._admission.lock

    @property
    def fits(self) -> bool:
        """Whether what is taken is within the budget."""
        return self._admission.fits

    @property
    def held_bytes(self) -> int:
        """What the model's runs have now; what is free is everybody's."""
        return self._admission.arenas_bytes

    @property
    def used_bytes(self) -> int:
        """All of that."""
        return self.held_bytes

    @property
    def peak_bytes(self) -> int:
        """The most that they ever had."""
        return self._admission.peak_bytes
