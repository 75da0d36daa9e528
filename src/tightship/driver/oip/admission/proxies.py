"""Clients behind trusted proxies, by the header `X-Forwarded-For`."""

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from tightship.errors import InputError

HOPS_MAX = 32
"""Most entries of the header that are read, from its end."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Proxies:
    """Addresses whose headers about their clients are believed; those of others are ignored."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Trust addresses and networks, such as `10.0.0.7` and `10.1.0.0/16`.

        Raises:
            InputError: A text is neither, or is a network of all addresses.
        """
        self._networks = [_network(text) for text in texts]

    def client_of(self, address: str, forwarded: str) -> str:
        """Return the address of the client of a call.

        It is the last one in the header that is not that of a proxy. An entry that is not an
        address ends the search at the proxy that wrote it.

        Args:
            address: Address that the connection comes from.
            forwarded: Value of the header; several lines joined by commas. Each proxy appends the
                address that it got the call from.
        """
        found = _parsed(address)
        if found is None:
            return address
        hops = forwarded.rsplit(",", HOPS_MAX)[-HOPS_MAX:]
        for hop in reversed(hops):
            before = _parsed(hop)
            if before is None or not self._trusts(found):
                break
            found = before
        return str(found)

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self._networks)


def _network(text: str) -> Network:
    try:
        found = ip_network(text)
    except ValueError as error:
        raise InputError(
            f"`{text}` is not an address or a network of proxies: {error}; write 10.0.0.7 or "
            "10.1.0.0/16."
        ) from None
    if found.prefixlen == 0:
        raise InputError(f"`{text}` trusts every address; name those of the proxies.")
    return found


def _parsed(text: str) -> Address | None:
    """Read an address, with or without a port; None for anything else."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found
