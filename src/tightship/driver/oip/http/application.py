"""ASGI application of the inference protocol: requests and responses, on any server of ASGI."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from time import monotonic_ns
from typing import Any

from tightship.driver.oip.admission.gate import NO_USE, Gate, Use
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.http.admitting import Refused, admitted
from tightship.driver.oip.http.body import (
    SMALL_BYTES,
    Body,
    BodyBuffer,
    TooLargeError,
    check_length,
)
from tightship.driver.oip.http.calls import HttpCalls, is_inference
from tightship.driver.oip.http.known_requests import KnownRequests
from tightship.driver.oip.http.long_calls import LongCalls, watched
from tightship.driver.oip.http.message import (
    HEADER_LENGTH,
    HttpRequest,
    HttpResponse,
    error_response,
)
from tightship.driver.oip.http.scope import (
    ASGI,
    EXCHANGE,
    GONE,
    HOLDS,
    ROOT,
    WHOLE,
    Receive,
    Scope,
    Send,
    call_of,
    headers_of,
    pairs_of,
    takes_views,
    target_of,
)
from tightship.driver.oip.http.turns import Turns
from tightship.driver.oip.queued_calls import QueuedCalls
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.oip.request_log import Exchange

JOINED_BYTES_MAX = 64 << 10
"""Responses up to this size are sent as one piece."""
CLOSES = (b"Connection", b"close")
TEXTS = "/v1/"
"""Beginning of the paths of OpenAI's API."""
GENERATE = ("/generate", "/generate_stream")
"""Ends of the paths of the protocol's calls for texts."""


class HttpApplication:
    """Answers HTTP requests of ASGI, version 3.

    Quick calls are answered on the event loop, others by threads. A client that disconnects while
    it waits is left: its run does not begin, or ends after the current step.
    """

    def __init__(
        self,
        calls: HttpCalls,
        body_bytes_max: int,
        executor: Executor,
        loaders: Executor,
        gate: Gate | None = None,
        queue: QueuedCalls | None = None,
    ) -> None:
        """Answer by calls.

        Args:
            calls: The calls of the protocol.
            body_bytes_max: Largest body.
            executor: Threads that run models, or wait for a permit: one for each connection.
            loaders: Threads that load and unload models, apart so that runs need not wait.
            gate: Admission of requests, before their bodies are read; None to admit all.
            queue: Queue of inferences that wait for permits; None to have them wait in threads.
        """
        self._calls, self._body_bytes_max, self._gate = calls, body_bytes_max, gate
        self._executor, self._loaders = executor, loaders
        self._long = LongCalls(calls, self._respond, executor, loaders, queue)
        self._turns = Turns(calls, self._respond_together, executor)
        self.known = KnownRequests()
        """Requests that `again` knows."""
        self.texts: ASGI | None = None
        """Application that answers below `/v1/`, and `generate`; None for none."""
        self.log = RefusalLog()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or the events of a server's life; refuse everything else."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        host, port = scope.get("client") or ("gone", 0)
        client = f"http:{host}:{port}"
        if self._gate is None:
            await self._answer_client(scope, receive, send, client, host, NO_USE)
            return
        found = admitted(self._gate, host, scope["method"], target_of(scope), pairs_of(scope))
        client = client if found.address == host else f"http:{found.address}:0"
        if isinstance(found, Refused):
            request_id = _noted(scope, client, found.address)
            self.log.refused(client, call_of(scope), found.reason, request_id)
            await _send(found.response, send, is_last=found.is_last, takes_views=False)
            return
        sending = _ending(send, found.use)
        try:
            await self._answer_client(scope, receive, sending, client, found.account, found.use)
        finally:
            found.use.end()

    async def _answer_client(
        self, scope: Scope, receive: Receive, send: Send, client: str, account: str, use: Use
    ) -> None:
        """Answer a request of a client that is admitted, and count its bytes as those of its use.

        Args:
            scope: The request, as ASGI has it.
            receive: Returns parts of its body.
            send: Sends parts of the response.
            client: Name of the client in the log.
            account: What the request counts for.
            use: Counts the bytes of request and response.
        """
        request_id = _noted(scope, client, account)
        if self.texts is not None and _is_of_texts(scope["path"]):
            await self.texts(scope, _counted(receive, use), send)
            return
        caller = self._calls.caller(account, client)
        caller.request_id = request_id
        request, is_last = await self._request(scope, _counted(receive, use), caller), False
        if request is None:
            return
        if isinstance(request, HttpResponse):
            self.log.refused(client, call_of(scope), str(request.parts[0], "utf-8"), request_id)
            response, is_last = request, True  # the rest of the body is not read
        else:
            found = await self._joined(request, caller, scope)
            response = found or await self._alone(request, caller, scope, receive)
        del request  # its body is not needed to send a response
        use.spend(response.size_bytes)
        await _send(response, send, is_last=is_last, takes_views=takes_views(scope))

    async def _joined(
        self, request: HttpRequest, caller: Caller, scope: Scope
    ) -> HttpResponse | None:
        """Answer a request together with those of other clients that came at the same time.

        Returns:
            None if it is to be answered alone.
        """
        extensions = scope.get("extensions") or {}
        if HOLDS not in extensions:
            return None
        held = self._turns.held(request, caller, scope.get("client"))
        if held is None:
            return None
        extensions[GONE](caller.leave)
        return await held

    async def _alone(
        self, request: HttpRequest, caller: Caller, scope: Scope, receive: Receive
    ) -> HttpResponse:
        if self._calls.is_long(request, caller):
            watch = (scope.get("extensions") or {}).get(GONE)
            return await self._long.answer(request, caller, watch or partial(watched, receive))
        response = self._respond(request, caller)
        caller.release()
        self._remember(request, scope, response)
        return response

    def again(self, whole: bytes, host: str, client: str) -> HttpResponse | None:
        """Answer bytes that have been a request before.

        Args:
            whole: All bytes of a request, and no others.
            host: Address of the client.
            client: Name of the client in the log.

        Returns:
            None if they are not known, or if answering may take long.
        """
        known = self.known.find(whole)
        if known is None:
            return None
        repeated = self._calls.again(known)
        if repeated is not None:
            return repeated
        caller = self._calls.caller(host, client)
        came_ns, headers = monotonic_ns(), known.headers
        request = HttpRequest(
            known.method, known.target, headers, known.body, came_ns, caller, known.inference
        )
        if not self._calls.is_quick(request, caller):
            return None
        response = self._respond(request, caller)
        caller.release()
        return response

    def _remember(self, request: HttpRequest, scope: Scope, response: HttpResponse) -> None:
        """Know a quick inference again by its bytes, unless it has tensors in them.

        With a gate, every request is admitted by its headers; a log has every one.
        """
        whole = (scope.get("extensions") or {}).get(WHOLE)
        has_tensors = HEADER_LENGTH in request.headers
        if whole is None or has_tensors or self._gate is not None or EXCHANGE in scope:
            return
        if response.status == 200 and is_inference(request):
            self.known.keep(whole["bytes"], self._calls.read(request))

    async def _request(
        self, scope: Scope, receive: Receive, caller: Caller
    ) -> HttpRequest | HttpResponse | None:
        """Return the request; a refusal if its body is too large, None if the client has gone."""
        headers = headers_of(scope)
        try:
            body = await self._body(headers, receive)
        except TooLargeError:
            return error_response(
                413,
                f"the body of a request may have {self._body_bytes_max} bytes; start the server "
                "with a larger `--max-body`",
            )
        if body is None:
            return None
        method, target = scope["method"], target_of(scope)
        return HttpRequest(method, target, headers, body, monotonic_ns(), caller)

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> Body | None:
        """Return the whole body; None if the client has gone.

        Raises:
            TooLargeError: It exceeds the limit.
        """
        check_length(headers, self._body_bytes_max)
        buffer: BodyBuffer | None = None
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part: bytes = message.get("body", b"")
            more = message.get("more_body", False)
            if buffer is None and not more and len(part) <= SMALL_BYTES:
                return part
            buffer = buffer or BodyBuffer(headers, self._body_bytes_max)
            buffer.add(part)
            if not more:
                return buffer.body()

    def _respond(self, request: HttpRequest, caller: Caller) -> HttpResponse:
        """Return the response to a request; called on any thread."""
        try:
            response = self._calls.respond(request, caller)
        except Exception:  # noqa: BLE001 - an error of ours; clients get no details
            return self._failed(request, caller)
        return self._logged(request, caller, response)

    def _respond_together(self, requests: Sequence[HttpRequest]) -> list[HttpResponse]:
        """Return the responses to requests that are joined; called on any thread."""
        try:
            responses = self._calls.respond_together(requests)
        except Exception:  # noqa: BLE001 - an error of ours, which fails one request alone
            if len(requests) == 1:
                return [self._failed(requests[0], requests[0].caller)]
            return [found for each in requests for found in self._respond_together([each])]
        return [
            self._logged(each, each.caller, response)
            for each, response in zip(requests, responses, strict=True)
        ]

    def _failed(self, request: HttpRequest, caller: Caller | None) -> HttpResponse:
        """Log an error of ours, within its handling."""
        client, request_id = ("", "") if caller is None else (caller.client, caller.request_id)
        self.log.failed(client, f"{request.method} {request.target}", request_id)
        return error_response(500, "internal error")

    def _logged(
        self, request: HttpRequest, caller: Caller | None, response: HttpResponse
    ) -> HttpResponse:
        """Log a response if it is a refusal."""
        if caller is not None and response.status >= 400 and response.parts:
            said = caller.client, f"{request.method} {request.target}"
            self.log.refused(*said, str(response.parts[0], "utf-8"), caller.request_id)
        return response


async def _send(response: HttpResponse, send: Send, *, is_last: bool, takes_views: bool) -> None:
    headers = [*response.headers, CLOSES] if is_last else response.headers
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    parts = response.parts if response.has_body else ()
    if not parts or response.size_bytes <= JOINED_BYTES_MAX:
        parts = (b"".join(parts),)
    for number, part in enumerate(parts, 1):
        body = part if takes_views else bytes(part)
        more = number < len(parts)
        await send({"type": "http.response.body", "body": body, "more_body": more})


def _counted(receive: Receive, use: Use) -> Receive:
    """Return a function that receives as another does, and counts the bytes of bodies."""
    if use is NO_USE:
        return receive

    async def counting() -> Mapping[str, Any]:
        message = await receive()
        use.spend(len(message.get("body", b"")))
        return message

    return counting


def _ending(send: Send, use: Use) -> Send:
    """Return a function that sends as another does, and ends the use before the last piece.

    A client that makes one call after another begins the next as soon as it has the whole
    response, so a call that ended later would still count then.
    """
    if use is NO_USE:
        return send

    async def ending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            body = message.get("body", b"")
            if isinstance(body, memoryview) and body.nbytes > SMALL_BYTES:
                whole = body.cast("B")
                await send({**message, "body": whole[:-SMALL_BYTES], "more_body": True})
                message = {**message, "body": whole[-SMALL_BYTES:]}
            if len(message.get("body", b"")) <= SMALL_BYTES:
                use.end()
        await send(message)

    return ending


async def _live(receive: Receive, send: Send) -> None:
    """Answer the events of a server's start and end."""
    with suppress(asyncio.CancelledError):
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return


def _noted(scope: Scope, client: str, account: str) -> str:
    """Note the client of a request that is logged; return the id of the request, or nothing."""
    exchange: Exchange | None = scope.get(EXCHANGE)
    if exchange is None:
        return ""
    exchange.client, exchange.account = client, account
    return exchange.request_id


def _is_of_texts(path: str) -> bool:
    return path.startswith(TEXTS) or (path.startswith(ROOT) and path.endswith(GENERATE))
