"""Protection from pages of other servers that a browser has loaded, by the headers of requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address


@dataclass(frozen=True, slots=True, eq=False)
class AllowedOrigins:
    """Names by which browsers may reach a server.

    A page that requests across origins sends its own name as `Origin`. A page whose name was
    rebound to this machine after loading sends that name as `Host`; so a server for this machine
    alone accepts only addresses, `localhost` and its own names.

    Attributes:
        is_local: Whether the server listens for this machine alone.
        names: Host names of the server in lower case, such as that of a reverse proxy.
    """

    is_local: bool
    names: frozenset[str] = frozenset()

    def refusal(self, headers: Mapping[str, str]) -> str | None:
        """Return why a request is refused, for a 403; None to accept it."""
        return _refusal(self, headers.get("host", ""), headers.get("origin"))


@lru_cache(maxsize=64)
def _refusal(allowed: AllowedOrigins, host: str, origin: str | None) -> str | None:
    is_own = _bare(host) in allowed.names
    if allowed.is_local and host and not (is_own or _is_address(_bare(host))):
        return (
            f"Host is '{host}'; this server is called by an address, by localhost, or by a "
            "name that it was started with (`--host-name`)"
        )
    if origin is None or origin.partition("://")[2] == host:
        return None
    if _bare(origin.partition("://")[2]) in allowed.names:
        return None
    return f"Origin is '{origin}'; pages of other servers may not call this one"


ANY_HOST = AllowedOrigins(is_local=False)


def is_loopback(host: str) -> bool:
    """Whether an address is reachable from this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bare(host: str) -> str:
    name, _, port = host.rpartition(":")
    return (name if name and port.isdecimal() else host).lower()


def _is_address(bare: str) -> bool:
    try:
        ip_address(bare.removeprefix("[").removesuffix("]"))
    except ValueError:
        return bare == "localhost"
    return True
