"""Admission of calls, the same for HTTP and gRPC."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code

if TYPE_CHECKING:
    from tightship.driver.oip.admission.certificate import Certificate
    from tightship.driver.oip.admission.proxies import Proxies
    from tightship.driver.oip.admission.tokens import TokenFile

AUTHORIZATION, FORWARDED = "authorization", "x-forwarded-for"

Headers = Mapping[str, str]
"""Headers by names in lower case."""


def joined(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return headers by name; the values of a repeated one are joined by commas.

    So a second token makes the first one invalid, and no header hides another.
    """
    found: dict[str, str] = {}
    for name, value in headers:
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


class AdmissionError(OipError):
    """A client may not make a call."""


class Gate:
    """Admits the calls of clients. May be used from several threads."""

    def __init__(self, tokens: "TokenFile | None" = None, proxies: "Proxies | None" = None) -> None:
        """Admit clients.

        Args:
            tokens: Tokens, of which calls need one; None if they need none.
            proxies: Proxies that are believed who their clients are; None for no proxies.
        """
        self._tokens, self._proxies = tokens, proxies

    def client_of(self, address: str, headers: Headers) -> str:
        """Return the address of a call's client, which may be behind a proxy.

        Args:
            address: Address that the connection comes from, without a port.
            headers: Headers of the call, as `joined` makes them.
        """
        forwarded = headers.get(FORWARDED)
        if self._proxies is None or forwarded is None:
            return address
        return self._proxies.client_of(address, forwarded)

    def admit(self, address: str, headers: Headers, *, is_open: bool) -> str:
        """Return the account of a client that makes a call: its address, or the one of its token.

        Args:
            address: Address of the client, without a port.
            headers: Headers of the call, as `joined` makes them.
            is_open: Whether the call needs no token: whether the server is alive, and ready.

        Raises:
            AdmissionError: The call needs a token, and has none that is valid.
        """
        if self._tokens is None or is_open:
            return address
        given = headers.get(AUTHORIZATION)
        name = None if given is None else self._tokens.client_of(given)
        if name is None:
            said = "has no token" if given is None else "has a token that is not valid"
            raise AdmissionError(
                f"the call {said}; send the header `Authorization: Bearer TOKEN`",
                Code.UNAUTHENTICATED,
            )
        return f"token:{name}"


@dataclass(frozen=True, slots=True)
class Entry:
    """Rules of connections and calls.

    Attributes:
        host_names: Names under which HTTP clients reach the server, besides addresses and
            `localhost`.
        certificate: Certificate of TLS; None for connections in plain text.
        gate: Admission of calls; None to admit all.
        has_request_log: Whether each call is logged, and has an id.
    """

    host_names: frozenset[str] = frozenset()
    certificate: "Certificate | None" = None
    gate: Gate | None = None
    has_request_log: bool = False


OPEN_ENTRY = Entry()
"""Rules that admit every client."""
