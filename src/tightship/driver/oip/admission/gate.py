"""Admission of calls, the same for HTTP and gRPC."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.request_log import Sinks

if TYPE_CHECKING:
    from tightship.driver.oip.admission.certificate import Certificate
    from tightship.driver.oip.admission.proxies import Proxies
    from tightship.driver.oip.admission.quotas import Quotas
    from tightship.driver.oip.admission.rates import Wait
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
    """A client may not make a call.

    Attributes:
        retry_s: Seconds after which it may call again, if it has called too often; otherwise None.
    """

    def __init__(self, message: str, code: Code, retry_s: float | None = None) -> None:
        super().__init__(message, code)
        self.retry_s = retry_s


class Gate:
    """Admits the calls of clients. May be used from several threads."""

    def __init__(
        self,
        tokens: "TokenFile | None" = None,
        proxies: "Proxies | None" = None,
        quotas: "Quotas | None" = None,
    ) -> None:
        """Admit clients.

        Args:
            tokens: Tokens, of which calls need one; None if they need none.
            proxies: Proxies that are believed who their clients are; None for no proxies.
            quotas: Limits for each client; None for no limits.
        """
        self._tokens, self._proxies, self._quotas = tokens, proxies, quotas

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
        """Admit and count a call, as `identify` and `count`; one that is open does not count."""
        account = self.identify(address, headers, is_open=is_open)
        if not is_open:
            self.count(account)
        return account

    def count(self, account: str) -> None:
        """Count a call of an account.

        Raises:
            AdmissionError: The account has made too many calls, or its calls had too many bytes.
        """
        if self._quotas is not None:
            _refuse(self._quotas.take(account))

    def begin(self, account: str, *, is_open: bool) -> "Use":
        """Begin a call of an account, whose use ends it; one that is open counts for nothing.

        Raises:
            AdmissionError: The account has too many calls under way.
        """
        if self._quotas is None or is_open:
            return NO_USE
        _refuse(self._quotas.begin(account))
        return Use(self._quotas, account)

    def identify(self, address: str, headers: Headers, *, is_open: bool) -> str:
        """Return the account of a client that makes a call: its address, or the one of its token.

        Args:
            address: Address of the client, without a port.
            headers: Headers of the call, as `joined` makes them.
            is_open: Whether the call needs no token: whether the server is alive, and ready.

        Raises:
            AdmissionError: The call needs a token, and has none that is valid. Such calls count for
                the address, so that tokens cannot be tried out quickly.
        """
        if self._tokens is None or is_open:
            return self._account_of(address)
        given = headers.get(AUTHORIZATION)
        name = None if given is None else self._tokens.client_of(given)
        if name is None:
            self.count(self._account_of(address))
            said = "has no token" if given is None else "has a token that is not valid"
            raise AdmissionError(
                f"the call {said}; send the header `Authorization: Bearer TOKEN`",
                Code.UNAUTHENTICATED,
            )
        return f"token:{name}"

    def _account_of(self, address: str) -> str:
        return address if self._quotas is None else self._quotas.account_of(address)


class Use:
    """Call of an account that is under way."""

    def __init__(self, quotas: "Quotas | None", account: str) -> None:
        """Count a call that has begun; without quotas, nothing is counted."""
        self._quotas, self._account = quotas, account

    def spend(self, size_bytes: int) -> None:
        """Count bytes of the request or the response."""
        if self._quotas is not None:
            self._quotas.spend(self._account, size_bytes)

    def end(self) -> None:
        """End the call. Harmless when repeated."""
        quotas, self._quotas = self._quotas, None
        if quotas is not None:
            quotas.end(self._account)


NO_USE = Use(None, "")
"""Use of calls that are not counted."""


def _refuse(wait: "Wait | None") -> None:
    """Refuse a client that has to wait.

    Raises:
        AdmissionError: There is a reason to wait.
    """
    if wait is not None:
        after_s = max(1, ceil(wait.seconds))
        raise AdmissionError(
            f"the client makes {wait.reason}; try again in {after_s} s",
            Code.RESOURCE_EXHAUSTED,
            wait.seconds,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """Rules of connections and calls.

    Attributes:
        host_names: Names under which HTTP clients reach the server, besides addresses and
            `localhost`.
        certificate: Certificate of TLS; None for connections in plain text.
        gate: Admission of calls; None to admit all.
        sinks: Functions that take each call once it is over; without any, calls have no ids.
    """

    host_names: frozenset[str] = frozenset()
    certificate: "Certificate | None" = None
    gate: Gate | None = None
    sinks: Sinks = ()


OPEN_ENTRY = Entry()
"""Rules that admit every client."""
