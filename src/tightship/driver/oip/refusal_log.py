"""What is logged of requests that are refused: each line names the client."""

import logging
import threading
from collections import OrderedDict

from tightship.driver.printable import printable
from tightship.driver.types.quota import LINES_MAX

CLIENTS_MAX = 1024
"""Whose refusals are counted; of one more, who was refused least recently begins anew."""
TEXT_MAX = 200
"""Letters of a call, and of a reason, in a line: a client may send 64 KiB of target."""

_LOG = logging.getLogger(__name__)


class RefusalLog:
    """The first lines about each client, by its address. May be used from several threads.

    A client is named as `kind:address:port`. Its port is told and not counted by, as each new
    connection has another.
    """

    def __init__(self) -> None:
        self._counts = OrderedDict[str, int]()
        self._lock = threading.Lock()

    def refused(self, client: str, call: str, reason: str) -> None:
        """A call of a client was refused."""
        if self._counted(client) <= LINES_MAX:
            _LOG.info("%s: %s is refused: %s", client, _line(call), _line(reason))

    def failed(self, client: str, call: str) -> None:
        """A call met the exception that is being handled: a mistake of ours."""
        if self._counted(client) <= LINES_MAX:
            _LOG.exception("%s: %s met an error of the driver.", client, _line(call))

    def _counted(self, client: str) -> int:
        address, _, _ = client.rpartition(":")
        with self._lock:
            count = self._counts[address] = self._counts.get(address, 0) + 1
            self._counts.move_to_end(address)
            if len(self._counts) > CLIENTS_MAX:
                self._counts.popitem(last=False)
        if count == LINES_MAX + 1:
            _LOG.info("%s: what else is refused of it is not told.", address)
        return count


def _line(text: str) -> str:
    return printable(text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "...")
