"""HTTP application whose requests are logged, and have ids."""

from collections.abc import Mapping
from typing import Any

from tightship.driver.oip.http.application import (
    EXCHANGE,
    HttpApplication,
    Receive,
    Scope,
    Send,
)
from tightship.driver.oip.request_log import REQUEST_ID, Exchange, begin


class LoggedApplication:
    """Application that logs a line for each request, and returns its id in a header."""

    def __init__(self, app: HttpApplication) -> None:
        """Log the requests of an application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = [value for name, value in scope["headers"] if name == REQUEST_ID.encode()]
        said = given[0].decode("latin-1") if len(given) == 1 else None
        # Without the query, where some clients have secrets.
        exchange = scope[EXCHANGE] = begin(f"{scope['method']} {scope['path']}", said)
        try:
            await self._app(scope, _counted(receive, exchange), _told(send, exchange))
        finally:
            exchange.end()


def _counted(receive: Receive, exchange: Exchange) -> Receive:
    async def received() -> Mapping[str, Any]:
        event = await receive()
        exchange.received_bytes += len(event.get("body", b""))
        return event

    return received


def _told(send: Send, exchange: Exchange) -> Send:
    async def sent(event: dict[str, Any]) -> None:
        if event["type"] == "http.response.start":
            exchange.status = event["status"]
            name, value = b"X-Request-ID", exchange.request_id.encode()
            event = {**event, "headers": [*event["headers"], (name, value)]}
        else:
            exchange.sent_bytes += len(event.get("body", b""))
        await send(event)

    return sent
