"""Listening socket of a driver."""

import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

from tightship.driver.printable import printable
from tightship.driver.protocol.codec import encode_reply
from tightship.driver.protocol.replies import Failed
from tightship.driver.server.accepting import Acceptor
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus
from tightship.errors import InputError

PARTS_LEFT = 4
"""Multiples of `RESERVED_PART` that this socket's connections and files leave to others."""
FAREWELL = Failed(
    ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
    "The driver has too few descriptors left for another connection.",
)
_CREDENTIALS = struct.Struct("3i")


def listen(path: Path, *, is_open: bool = False) -> socket.socket:
    """Listen at a path that only this user can connect to; a dead driver's socket is replaced.

    Args:
        path: Path in an existing folder.
        is_open: Whether other users can connect as well, to be checked when accepted.

    Raises:
        InputError: A driver listens there, the path is taken, or the socket cannot be created.
    """
    _remove_dead(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(str(path))
        path.chmod(0o666 if is_open else 0o600)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(
            f"The driver cannot listen at `{path}`: {error.strerror or error}. Name another path."
        ) from None
    listener.settimeout(0)
    return listener


class ListeningSocket(Acceptor):
    """Listening socket at a path."""

    def __init__(self, path: Path, *, is_open: bool) -> None:
        """Listen; arguments and errors as for `listen`."""
        self._path = path
        super().__init__(
            listen(path, is_open=is_open),
            "the driver's socket",
            parts=PARTS_LEFT,
            farewell=encode_reply(FAREWELL, 0),
        )

    def shut(self) -> None:
        """Stop listening and remove the path. Harmless when repeated."""
        if self.fileno() >= 0:
            self.close()
            with suppress(FileNotFoundError):
                self._path.unlink()


def caller_of(connection: socket.socket, number: int) -> Caller:
    """Return the process at the other end, as the kernel reports it."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(found)
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, MemoryError):
        name = "?"
    return Caller(number, user, pid, printable(name))


def _remove_dead(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return
    if not is_socket:
        raise InputError(f"`{path}` exists and is not a socket; name another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise InputError(f"`{path}` cannot be connected to: {error.strerror}.") from None
    raise InputError(f"A driver listens at `{path}`; stop it, or name another path.")
