"""Log lines about clients."""

import logging
from collections import Counter

from tightship.driver.printable import printable
from tightship.driver.protocol.replies import Failed
from tightship.driver.types.quota import LINES_MAX
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus

_GRAVE = frozenset(
    {
        ErrorStatus.MISSED_DEADLINE_TRANSIENT,
        ErrorStatus.MISSED_DEADLINE_PERSISTENT,
        ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
        ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
    }
)
"""Statuses logged as warnings, because a client reached a limit; others are information."""

_LOG = logging.getLogger(__name__)


class ClientLog:
    """Log lines about connected clients, by the number of the connection."""

    def __init__(self) -> None:
        self._callers: dict[int, Caller] = {}
        self._refusals = Counter[int]()

    def connected(self, caller: Caller) -> None:
        """Log a new client."""
        self._callers[caller.connection] = caller
        _LOG.info("%s has connected.", caller)

    def refused(self, connection: int, reply: Failed) -> None:
        """Log a failed call."""
        caller = self._callers.get(connection)
        if caller is None:
            return
        self._refusals[connection] += 1
        if self._refusals[connection] > LINES_MAX:
            return
        level = logging.WARNING if reply.status in _GRAVE else logging.INFO
        _LOG.log(level, "%s: %s. %s", caller, reply.status.name, printable(reply.message))
        if self._refusals[connection] == LINES_MAX:
            _LOG.log(level, "%s: further failures are counted only.", caller)

    def gone(self, connection: int, *, held_count: int) -> None:
        """Log the end of a connection, and how much the client still held."""
        caller = self._callers.pop(connection, None)
        if caller is not None:
            failed = self._refusals.pop(connection, 0)
            text = "%s is gone; %d of its calls failed, %d pools, models and buffers are released."
            _LOG.info(text, caller, failed, held_count)


def turned_away(caller: Caller) -> None:
    """Log a client that may not connect."""
    _LOG.warning("%s was refused: only root, the driver's user and `--allow` may connect.", caller)
