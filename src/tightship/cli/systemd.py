"""Takes sockets from systemd, and tells it when the server is ready."""

import os
import socket

from tightship.errors import InputError

SYSTEMD = "systemd"
"""Value of an option instead of an address."""
FIRST = 3
"""Descriptor of the first socket that is passed."""
_HOW = "start it by a .socket unit, or by `systemd-socket-activate`"


def host_of(where: tuple[str, int] | socket.socket) -> str:
    """Return the host of an address, or that of a socket that listens."""
    found = where.getsockname() if isinstance(where, socket.socket) else where
    return str(found[0])


def listening_socket() -> socket.socket:
    """Return the one TCP socket that systemd passed to this process.

    Raises:
        InputError: It passed none, several, or one of another kind.
    """
    # Removed, so that no child of this process takes them for its own.
    process, count = (os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS"))
    os.environ.pop("LISTEN_FDNAMES", None)
    if process != str(os.getpid()) or not (count.isascii() and count.isdigit() and int(count)):
        raise InputError(f"`--http systemd` needs a socket of systemd, which passed none; {_HOW}.")
    if int(count) != 1:
        raise InputError(
            f"systemd passed {int(count)} sockets; `--http systemd` takes one, for HTTP."
        )
    try:
        os.set_inheritable(FIRST, False)  # noqa: FBT003
        found = socket.socket(fileno=FIRST)
        is_listening = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        raise InputError(
            f"systemd passed a file that is not a socket as descriptor {FIRST}; {_HOW}."
        ) from None
    if found.family not in (socket.AF_INET, socket.AF_INET6) or not is_listening:
        found.close()
        raise InputError(
            "systemd passed a socket that does not listen for TCP; write `ListenStream=8000` into "
            "its .socket unit, without `Accept=yes`."
        )
    return found


def tell(state: str) -> None:
    """Tell systemd the state of this service, such as `READY=1`; without `Type=notify`, nothing.

    A state that cannot be delivered is dropped: the service works without it.
    """
    where = os.environ.get("NOTIFY_SOCKET", "")
    if where[:1] not in {"/", "@"}:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        try:
            told.sendto(state.encode(), where.replace("@", "\0", 1) if where[0] == "@" else where)
        except OSError:
            return
