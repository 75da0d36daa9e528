"""Pages of others, which a browser on this machine would let ask a driver of this machine."""

from collections.abc import Mapping
from ipaddress import ip_address


def may_ask(headers: Mapping[str, str], *, is_local: bool) -> bool:
    """Whether no page of another server asks, as far as a browser says.

    A page that asks across origins names its own as `Origin`. One whose name was made to stand for
    this machine after it was loaded names that as `Host`: who listens for this machine alone
    (`is_local`) is called by an address or `localhost`.
    """
    host = headers.get("host", "")
    if is_local and host and not _is_address(host):
        return False
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == host


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_address(host: str) -> bool:
    bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    try:
        ip_address(bare.removeprefix("[").removesuffix("]"))
    except ValueError:
        return bare.lower() == "localhost"
    return True
