"""Client of inferences: its run permits, and whether it still waits for replies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tightship._core import Place, RequestMetrics, RunPermits, StopFlag
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.permit_names import Names, named_model


class Caller:
    """Client on a connection or call, which requests one inference at a time.

    Attributes:
        account: Clients that share permits: an address without a port.
        client: Distinguishes clients of an account.
        stop: Flag set once the client is gone or the server ends.
        request_id: Id of its request in the log; empty for none.
        may_wait: Whether it may wait for a permit.
    """

    def __init__(self, permits: RunPermits, account: str = "", client: str = "") -> None:
        self.account, self.client = account, client
        self.stop, self.request_id, self.may_wait = StopFlag(), "", True
        self._permits = permits
        self._place: Place | None = None
        self._on_leave: Callable[[], None] | None = None
        # Give back the permit for the next inference, and that of the current one; None for none.
        self._reserved: Callable[..., None] | None = None
        self._held: Callable[..., None] | None = None

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

    def names(self, model: str) -> Names:
        """Return the groups by which calls of a model alternate."""
        return named_model(model, self.account, self.client)

    def take(self, place: Place, timeout_s: float | None) -> bool:
        """Wait for a permit in a place, unless one is reserved; return whether there is one.

        Args:
            place: Place of this caller.
            timeout_s: Seconds to wait at most; None for no limit.
        """
        self._held, self._reserved = self._reserved, None
        has_permit = self._held is not None
        if not has_permit and self.may_wait and not self.stop.is_set():
            has_permit = self._permits.take(place, timeout_s)
        if has_permit and self.stop.is_set():
            self.give_back(place)
            has_permit = False
        return has_permit

    @property
    def has_permit(self) -> bool:
        """Whether a permit is reserved for its next inference, which then waits for nothing."""
        return self._reserved is not None

    @property
    def waiting_count(self) -> int:
        """Calls that wait for a permit, of all callers and models."""
        return self._permits.waiting_count

    def give_back(self, place: Place) -> None:
        """Give back the permit that was taken in a place."""
        held, self._held = self._held, None
        (held or self._permits.give_back)(place)

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
        if self._permits.take_free():
            self._reserved = self._permits.give_back
        return self._reserved is not None

    def receive_permit(self, give_back: Callable[..., None]) -> None:
        """Have a permit for the next inference, which a function of a place or none gives back."""
        self._reserved = give_back

    def release(self) -> None:
        """Give back a permit that no inference has used. Harmless if there is none."""
        reserved, self._reserved = self._reserved, None
        if reserved is not None:
            reserved()

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
