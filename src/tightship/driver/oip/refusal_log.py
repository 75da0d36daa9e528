"""What is logged of requests that are refused: each line names the client."""

import logging
import threading
from collections import OrderedDict

from tightship.driver.printable import printable
from tightship.driver.rim.client_log import LINES_MAX

CLIENTS_MAX = 1024
"""Whose refusals are counted; of one more, who was refused least recently begins anew."""

_LOG = logging.getLogger(__name__)


class RefusalLog:
    """The first lines about each client, by its address. May be used from several threads."""

    def __init__(self) -> None:
        self._counts = OrderedDict[str, int]()
        self._lock = threading.Lock()

    def refused(self, client: str, call: str, reason: str) -> None:
        """A call of a client was refused."""
        if self._counted(client) <= LINES_MAX:
            _LOG.info("%s: %s is refused: %s", client, printable(call), printable(reason))

    def failed(self, client: str, call: str) -> None:
        """A call met the exception that is being handled: a mistake of ours."""
        if self._counted(client) <= LINES_MAX:
            _LOG.exception("%s: %s met an error of the driver.", client, printable(call))

    def _counted(self, client: str) -> int:
        with self._lock:
            count = self._counts[client] = self._counts.get(client, 0) + 1
            self._counts.move_to_end(client)
            if len(self._counts) > CLIENTS_MAX:
                self._counts.popitem(last=False)
        if count == LINES_MAX + 1:
            _LOG.info("%s: what else is refused of it is not told.", client)
        return count
