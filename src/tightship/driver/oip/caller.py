"""Who asks for inferences: whose turns these take, and whether the answers are still wanted."""

from tightship._core import Place, StopFlag, Tally, Turns
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.turn_names import named_model


class Caller:
    """A client on one connection, or with one call, that asks for one inference at a time.

    Attributes:
        account: Whose clients share turns: the client's address, without a port.
        client: Tells clients of an account apart.
        stop: Set once the client is gone or the server ends.
    """

    def __init__(self, turns: Turns, account: str = "", client: str = "") -> None:
        self.account, self.client = account, client
        self.stop = StopFlag()
        self._turns = turns
        self._place: Place | None = None
        self._has_reserved = False

    def leave(self) -> None:
        """Stop the inference that runs, and start none that waits; callable from any thread."""
        self.stop.set()
        place = self._place
        if place is not None:
            self._turns.leave(place)

    def reserve(self) -> bool:
        """Take a free turn for the next inference; `release` it if there was none."""
        self._has_reserved = self._turns.take_free()
        return self._has_reserved

    def release(self) -> None:
        """Return the turn that was reserved and not used. Harmless if there is none."""
        if self._has_reserved:
            self._has_reserved = False
            self._turns.give_back()

    def take_turn(self, model: str, tally: Tally, timeout_s: float | None) -> Place:
        """Wait for a turn to run a model, unless one is reserved.

        Args:
            model: Its name.
            tally: Counts the inference while it waits.
            timeout_s: Seconds to wait at most; None for no limit.

        Returns:
            Whose turn it is, to give it back.

        Raises:
            OipError: The client left, or the time has passed.
        """
        place = self._place = Place(named_model(model, self.account, self.client), tally)
        has_turn, self._has_reserved = self._has_reserved, False
        if not has_turn and not self.stop.is_set():  # `leave` sets the flag before it looks here
            has_turn = self._turns.take(place, timeout_s)
        if has_turn and not self.stop.is_set():
            return place
        if has_turn:
            self._turns.give_back(place)
        if self.stop.is_set():
            raise OipError("the call was cancelled", Code.UNAVAILABLE)
        raise OipError("Request timeout expired", Code.UNAVAILABLE)
