"""Client of inferences: its run permits, and whether it still waits for replies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tightship._core import Place, RequestMetrics, RunPermits, StopFlag
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.permit_names import named_model


class Caller:
    """Client on a connection or call, which requests one inference at a time.

    Attributes:
        account: Clients that share permits: an address without a port.
        client: Distinguishes clients of an account.
        stop: Flag set once the client is gone or the server ends.
        request_id: Id of its request in the log; empty for none.
    """

    def __init__(self, permits: RunPermits, account: str = "", client: str = "") -> None:
        self.account, self.client = account, client
        self.stop, self.request_id = StopFlag(), ""
        self._permits = permits
        self._place: Place | None = None
        self._on_leave: Callable[[], None] | None = None
        self._has_reserved = False

    def leave(self) -> None:
        """Stop the current inference, and start none that waits; callable from any thread."""
        self.stop.set()
        place, on_leave = self._place, self._on_leave
        if place is not None:
            self._permits.leave(place)
        if on_leave is not None:
            on_leave()

    @contextmanager
    def noticing(self, on_leave: Callable[[], None]) -> Iterator[None]:
        """Have a function called once the caller leaves within a block, or has left before."""
        self._on_leave = on_leave
        if self.stop.is_set():
            on_leave()
        try:
            yield
        finally:
            self._on_leave = None

    def place(self, model: str, metrics: RequestMetrics) -> Place:
        """Return a new place in the queue of a model; `metrics` count it while it waits."""
        self._place = Place(named_model(model, self.account, self.client), metrics)
        return self._place

    def take(self, place: Place, timeout_s: float | None) -> bool:
        """Wait for a permit in a place, unless one is reserved; return whether there is one.

        Args:
            place: Place of this caller.
            timeout_s: Seconds to wait at most; None for no limit.
        """
        has_permit, self._has_reserved = self._has_reserved, False
        if not has_permit and not self.stop.is_set():
            has_permit = self._permits.take(place, timeout_s)
        if has_permit and self.stop.is_set():
            self._permits.give_back(place)
            has_permit = False
        return has_permit

    def give_back(self, place: Place) -> None:
        """Give back the permit of a place."""
        self._permits.give_back(place)

    def withdraw(self, place: Place) -> None:
        """Remove another caller from the queue, which needs no permit any more."""
        self._permits.leave(place)

    def refusal(self) -> OipError:
        """Return the error of a call that was cancelled or whose timeout expired."""
        if self.stop.is_set():
            return OipError("the call was cancelled", Code.UNAVAILABLE)
        return OipError("Request timeout expired", Code.UNAVAILABLE)

    def reserve(self) -> bool:
        """Take a free permit for the next inference; return whether there was one."""
        self._has_reserved = self._permits.take_free()
        return self._has_reserved

    def release(self) -> None:
        """Return an unused reserved permit. Harmless if there is none."""
        if self._has_reserved:
            self._has_reserved = False
            self._permits.give_back()

    def take_permit(self, model: str, metrics: RequestMetrics, timeout_s: float | None) -> Place:
        """Wait for a permit to run a model, unless one is reserved.

        Args:
            model: Name of the model.
            metrics: Metrics that count the inference while it waits.
            timeout_s: Seconds to wait at most; None for no limit.

        Returns:
            The place in the queue, to return the permit.

        Raises:
            OipError: The client left, or the time is over.
        """
        place = self.place(model, metrics)  # `leave` sets the flag before it reads the place
        if not self.take(place, timeout_s):
            raise self.refusal()
        return place
