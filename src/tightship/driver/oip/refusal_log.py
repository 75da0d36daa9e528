"""Log lines about refused requests."""

import logging
import threading
from collections import OrderedDict

from tightship.driver.printable import printable
from tightship.driver.types.quota import LINES_MAX

CLIENTS_MAX = 1024
"""Clients whose refusals are counted; the least recently refused is forgotten first."""
FIELDS = "fields"
"""Attribute of log records: names and values besides the text."""
TEXT_MAX = 200
"""Most characters of a call or a reason in a line: a client may send 64 KiB of target."""

_LOG = logging.getLogger(__name__)


class RefusalLog:
    """First refusals of each client, by its address. May be used from several threads.

    A client is named as `kind:address:port`. The port is shown but not counted by, because it
    changes with each connection.
    """

    def __init__(self) -> None:
        self._counts = OrderedDict[str, int]()
        self._lock = threading.Lock()

    def refused(self, client: str, call: str, reason: str, request_id: str = "") -> None:
        """Log a refused call, which may have an id."""
        if self._counted(client) <= LINES_MAX:
            more = _fields(client, request_id)
            _LOG.info("%s: %s is refused: %s", client, _line(call), _line(reason), extra=more)

    def failed(self, client: str, call: str, request_id: str = "") -> None:
        """Log the current exception, an error of the driver."""
        if self._counted(client) <= LINES_MAX:
            more = _fields(client, request_id)
            _LOG.exception(
                "%s: %s failed with an unexpected error.", client, _line(call), extra=more
            )

    def _counted(self, client: str) -> int:
        address, _, _ = client.rpartition(":")
        with self._lock:
            count = self._counts[address] = self._counts.get(address, 0) + 1
            self._counts.move_to_end(address)
            if len(self._counts) > CLIENTS_MAX:
                self._counts.popitem(last=False)
        if count == LINES_MAX + 1:
            _LOG.info("%s: further refusals are not logged.", address)
        return count


def _fields(client: str, request_id: str) -> dict[str, dict[str, str]]:
    """Return the fields of a record, besides its text."""
    return {FIELDS: {"client": client, **({"request_id": request_id} if request_id else {})}}


def _line(text: str) -> str:
    return printable(text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "...")
