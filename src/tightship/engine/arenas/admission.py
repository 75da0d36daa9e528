"""Admission of a model's runs to arenas that it shares, within the model's budget."""

import threading
import time
from dataclasses import dataclass, field

from tightship.errors import InputError

FIRST_WAIT_S, LONGEST_WAIT_S = 1e-4, 4e-3
"""Seconds between two attempts of a waiting run, at first and at most; no signal ends the wait."""


@dataclass(slots=True)
class Admission:
    """Bytes admitted for runs; `book` admits only what is within the budget at that time.

    Attributes:
        budget_bytes: Most bytes of arenas and of what runs take beside them; None for no limit.
        arenas_bytes: Bytes of arenas admitted now.
        peak_bytes: Most bytes of arenas ever admitted.
        is_closed: Whether further runs are refused.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    budget_bytes: int | None = None
    arenas_bytes: int = 0
    peak_bytes: int = 0
    is_closed: bool = False
    _beside_bytes: int = 0

    def book(self, needed_bytes: int, beside_bytes: int) -> bool:
        """Admit an arena and a run's other bytes; return whether the budget allowed both.

        Raises:
            InputError: The model was closed.
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
        """Give back bytes that `book` admitted."""
        with self.lock:
            self.arenas_bytes -= needed_bytes
            self._beside_bytes -= beside_bytes

    @property
    def fits(self) -> bool:
        """Whether the admitted bytes are within the budget."""
        with self.lock:
            budget = self.budget_bytes
            return budget is None or self.arenas_bytes + self._beside_bytes <= budget

    def forked(self) -> None:
        """Forget runs of the parent's threads in a forked child."""
        self.arenas_bytes = self._beside_bytes = 0

    def end(self) -> None:
        """Admit no further run."""
        with self.lock:
            self.is_closed = True

    def close(self) -> None:
        """Call `end`, and wait until all arenas are given back."""
        self.end()
        wait_s = FIRST_WAIT_S
        while self.arenas_bytes:
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)


@dataclass(slots=True, eq=False)
class AdmittedBackings:
    """Base of a model's use of arenas that it shares; reports what its runs have admitted."""

    _admission: Admission = field(default_factory=Admission, init=False)

    @property
    def lock(self) -> threading.RLock:
        """Lock of the admission; it is free while the process forks."""
        return self._admission.lock

    @property
    def fits(self) -> bool:
        """Whether the admitted bytes are within the budget."""
        return self._admission.fits

    @property
    def held_bytes(self) -> int:
        """Bytes of arenas that the model's runs have now; free arenas belong to no model."""
        return self._admission.arenas_bytes

    @property
    def used_bytes(self) -> int:
        """The same as `held_bytes`."""
        return self.held_bytes

    @property
    def peak_bytes(self) -> int:
        """Most bytes that the model's runs had at any time."""
        return self._admission.peak_bytes
