"""What is logged of clients: each line names the client."""

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
"""Limits that a client has met: warnings; that it broke a rule is information."""

_LOG = logging.getLogger(__name__)


class ClientLog:
    """Lines about clients that are connected, by the number of the connection."""

    def __init__(self) -> None:
        self._callers: dict[int, Caller] = {}
        self._refusals = Counter[int]()

    def connected(self, caller: Caller) -> None:
        """A client is there."""
        self._callers[caller.connection] = caller
        _LOG.info("%s has connected.", caller)

    def refused(self, connection: int, reply: Failed) -> None:
        """A call of a client failed."""
        caller = self._callers.get(connection)
        if caller is None:
            return
        self._refusals[connection] += 1
        if self._refusals[connection] > LINES_MAX:
            return
        level = logging.WARNING if reply.status in _GRAVE else logging.INFO
        _LOG.log(level, "%s: %s. %s", caller, reply.status.name, printable(reply.message))
        if self._refusals[connection] == LINES_MAX:
            _LOG.log(level, "%s: what else fails of it is counted only.", caller)

    def gone(self, connection: int, *, held_count: int) -> None:
        """A client has hung up, or died, with so many things in the driver."""
        caller = self._callers.pop(connection, None)
        if caller is not None:
            failed = self._refusals.pop(connection, 0)
            text = "%s is gone; %d of its calls failed, %d things of it are given back."
            _LOG.info(text, caller, failed, held_count)


def turned_away(caller: Caller) -> None:
    """Somebody who may not connect came."""
    _LOG.warning("%s was turned away: only the driver's own user, and users allowed.", caller)
