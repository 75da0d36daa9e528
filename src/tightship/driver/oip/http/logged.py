"""HTTP application whose requests are logged, and have ids."""

from collections.abc import Mapping
from typing import Any

from tightship.driver.oip.admission.gate import joined
from tightship.driver.oip.http.application import HttpApplication
from tightship.driver.oip.http.scope import EXCHANGE, Receive, Scope, Send, pairs_of
from tightship.driver.oip.request_log import Exchange, Sinks, begin


class LoggedApplication:
    """Application whose exchanges have ids, which it returns in a header, and go to sinks."""

    def __init__(self, app: HttpApplication, sinks: Sinks) -> None:
        """Hand the exchanges of an application to sinks."""
        self._app, self._sinks = app, sinks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = joined(pairs_of(scope))  # repeated ones are not valid any more
        # Without the query, where some clients have secrets.
        call = f"{scope['method']} {scope['path']}"
        exchange = scope[EXCHANGE] = begin(call, headers, self._sinks)
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
