"""Request as ASGI has it: what servers put into its scope, and what is read from it."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from typing import Any
from urllib.parse import quote

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

ASGI = Callable[[Scope, Receive, Send], Awaitable[None]]


VIEWS = "tightship.views"
"""Extension of a server whose `send` takes views of memory as bodies."""
WHOLE = "tightship.whole"
"""Extension with all bytes of a request under `bytes`, for `HttpApplication.again`."""
GONE = "tightship.gone"
"""Extension with a function that takes one to call once the client disconnects."""
HOLDS = "tightship.holds"
"""Extension of a server that begins applications by `eager.begun`, with whole requests."""
EXCHANGE = "tightship.exchange"
"""Key in the scope of a request that is logged: the exchange to complete."""
ROOT = "/v2"
"""Path of the protocol, which a path that the application is mounted at may end with."""


def pairs_of(scope: Scope) -> Iterator[tuple[str, str]]:
    """Return names and values of the headers of a request."""
    return ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"])


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request by their names in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def takes_views(scope: Scope) -> bool:
    """Whether the server of a request sends views of memory as they are."""
    return VIEWS in (scope.get("extensions") or {})


def target_of(scope: Scope) -> str:
    """Return path and query as the protocol has them, wherever the application is mounted.

    A path without `/v2` is one beneath it: `/v2/health/live` is asked for as `/health/live` where
    the application is mounted at `/v2`.
    """
    raw = scope.get("raw_path")
    path = quote(scope["path"]) if raw is None else raw.decode("latin-1").partition("?")[0]
    root = scope.get("root_path", "").rstrip("/")
    if root:
        path = path.removeprefix(quote(root))
        path = path if path == ROOT or path.startswith(f"{ROOT}/") else f"{ROOT}{path}"
    query = scope.get("query_string", b"")
    return f"{path}?{query.decode('latin-1')}" if query else path


def call_of(scope: Scope) -> str:
    """Return what a request calls, for the log."""
    return f"{scope['method']} {target_of(scope)}"
