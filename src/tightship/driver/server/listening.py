"""Where a driver listens."""

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
"""Times `RESERVED_PART` that connections by the socket, and what clients hold, leave to others."""
FAREWELL = Failed(
    ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
    "The driver has too few descriptors left for another connection.",
)
_CREDENTIALS = struct.Struct("3i")


def listen(path: Path, *, is_open: bool = False) -> socket.socket:
    """A socket at a path that only this user can connect to; a dead driver's is replaced.

    Args:
        path: Its folder exists.
        is_open: Other users can connect as well; whoever accepts asks who they are.

    Raises:
        InputError: A driver listens there, something else has that path, or it cannot be made.
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


class Door(Acceptor):
    """Where clients come in, at a path."""

    def __init__(self, path: Path, *, is_open: bool) -> None:
        """Listen, as `listen`."""
        self._path = path
        super().__init__(
            listen(path, is_open=is_open),
            "the driver's socket",
            parts=PARTS_LEFT,
            farewell=encode_reply(FAREWELL, 0),
        )

    def shut(self) -> None:
        """Accept no more, and remove the path. Harmless when repeated."""
        if self.fileno() >= 0:
            self.close()
            with suppress(FileNotFoundError):
                self._path.unlink()


def caller_of(connection: socket.socket, number: int) -> Caller:
    """Who connected, as the kernel says."""
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
        raise InputError(f"`{path}` is there and is no socket; name another path.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError as error:
            raise InputError(f"`{path}` cannot be connected to: {error.strerror}.") from None
    raise InputError(f"A driver listens at `{path}`; stop it, or name another path.")
