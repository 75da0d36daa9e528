"""Client of inferences: its run permits, and whether it still waits for replies."""

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
    """

    def __init__(self, permits: RunPermits, account: str = "", client: str = "") -> None:
        self.account, self.client = account, client
        self.stop = StopFlag()
        self._permits = permits
        self._place: Place | None = None
        self._has_reserved = False

    def leave(self) -> None:
        """Stop the current inference, and start none that waits; callable from any thread."""
        self.stop.set()
        place = self._place
        if place is not None:
            self._permits.leave(place)

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
        place = self._place = Place(named_model(model, self.account, self.client), metrics)
        has_permit, self._has_reserved = self._has_reserved, False
        if (
            not has_permit and not self.stop.is_set()
        ):  # `leave` sets the flag before it reads `_place`
            has_permit = self._permits.take(place, timeout_s)
        if has_permit and not self.stop.is_set():
            return place
        if has_permit:
            self._permits.give_back(place)
        if self.stop.is_set():
            raise OipError("the call was cancelled", Code.UNAVAILABLE)
        raise OipError("Request timeout expired", Code.UNAVAILABLE)
