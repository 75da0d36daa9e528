"""ASGI application of OpenAI's API."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import Executor
from typing import Any

from tightship._core import StopFlag
from tightship.driver.oip.http.body import Body, BodyBuffer, TooLargeError, check_length
from tightship.driver.oip.http.browsers import ANY_HOST, AllowedOrigins
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.openai.encoder_request import (
    EncoderRequest,
    Read,
    read_embedding,
    read_reranking,
)
from tightship.driver.openai.generate_call import GenerateCall, GenerateResponse, error_of
from tightship.driver.openai.openai_error import ApiError, api_error
from tightship.driver.openai.text_request import TextRequest, read_chat, read_completion
from tightship.driver.openai.text_response import TextResponse
from tightship.driver.texts.answer import Asked, Ended
from tightship.driver.texts.text_models import TextModel, TextModels
from tightship.errors import InputError
from tightship.text.generation import check_prompt, check_size

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Said = str | Ended
Response = TextResponse | GenerateResponse

ROOT = "/v1/"
READERS = {"/v1/chat/completions": read_chat, "/v1/completions": read_completion}
ENCODERS: Mapping[str, Read] = {
    "/v1/embeddings": read_embedding,
    "/v1/rerank": read_reranking,
}
JSON = (b"Content-Type", b"application/json")
EVENTS = [(b"Content-Type", b"text/event-stream"), (b"Cache-Control", b"no-cache"),
          (b"X-Accel-Buffering", b"no")]  # fmt: skip


class OpenAiApplication:
    """Answers HTTP requests of ASGI, version 3: those below `/v1/`, and `generate` of `/v2`.

    A client that disconnects ends its answer after the current step, and frees the session.
    """

    def __init__(
        self,
        models: TextModels,
        body_bytes_max: int,
        executor: Executor,
        origins: AllowedOrigins = ANY_HOST,
        log: RefusalLog | None = None,
    ) -> None:
        """Answer with models.

        Args:
            models: The language models.
            body_bytes_max: Largest body.
            executor: Threads that find the tokens of prompts.
            origins: Names by which browsers may reach the server.
            log: Log of refused requests.
        """
        self._models, self._body_bytes_max, self._executor = models, body_bytes_max, executor
        self._origins, self._log = origins, log or RefusalLog()
        self._created = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        host, port = scope.get("client") or ("gone", 0)
        said = f"http:{host}:{port}", f"{scope['method']} {scope['path']}"
        try:
            await self._answer(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - clients get no details of ours
            refusal = api_error(error)
            if refusal is None:
                self._log.failed(*said)
                refusal = ApiError(500, "internal error")
            else:
                self._log.refused(*said, str(refusal))
            is_v1 = scope["path"].startswith(ROOT)
            body = refusal.body if is_v1 else json.dumps(error_of(refusal)).encode()
            await _send(send, refusal.status, body, [JSON, *refusal.headers])

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {n.decode("latin-1"): v.decode("latin-1") for n, v in scope["headers"]}
        if (reason := self._origins.refusal(headers)) is not None:
            raise ApiError(403, reason)
        path, method = scope["path"].rstrip("/"), scope["method"]
        call = GenerateCall.of(path)
        if path not in READERS and path not in ENCODERS and call is None:
            await self._list(path, method, send)
            return
        if method != "POST":
            raise ApiError(405, f"`{path}` takes POST")
        body = await self._body(headers, receive)
        if body is None:
            return
        if path in READERS:
            request = READERS[path](body)
            response = TextResponse(request.model, request.is_chat)
            await self._complete(request, response, receive, send)
        elif call is not None:
            self._models.check_version(call.model, call.version)
            await self._complete(*call.read(body), receive, send)
        else:
            await self._encode(ENCODERS[path](body), receive, send)

    async def _list(self, path: str, method: str, send: Send) -> None:
        """Send the models, or one of them.

        Raises:
            ApiError: Nothing is at the path, or no language model has the name.
        """
        if method not in ("GET", "HEAD"):
            raise ApiError(404, f"no resource is at `{path}`")
        rows = [
            {"id": name, "object": "model", "created": self._created, "owned_by": "tightship"}
            for name in (*self._models.names, *self._models.encoders.names)
        ]
        said: object = {"object": "list", "data": rows}
        if path != "/v1/models":
            name = path.removeprefix("/v1/models/")
            found = [row for row in rows if row["id"] == name]
            if not found:
                raise ApiError(404, f"no resource is at `{path}`", code="model_not_found")
            (said,) = found
        await _send(send, 200, json.dumps(said).encode(), [JSON])

    async def _body(self, headers: Mapping[str, str], receive: Receive) -> Body | None:
        """Return the body; None if the client has gone.

        Raises:
            ApiError: It is too large, or packed.
        """
        if headers.get("content-encoding", "identity") != "identity":
            raise ApiError(400, "packed bodies are not supported; send plain JSON")
        try:
            check_length(headers, self._body_bytes_max)
            buffer = BodyBuffer(headers, self._body_bytes_max)
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                buffer.add(message.get("body", b""))
                if not message.get("more_body", False):
                    return buffer.body()
        except TooLargeError:
            raise ApiError(
                413, f"the body of a request may have {self._body_bytes_max} bytes"
            ) from None

    async def _complete(
        self, request: TextRequest, response: Response, receive: Receive, send: Send
    ) -> None:
        """Ask for an answer, and send it; one whose client leaves is ended."""
        loop = asyncio.get_running_loop()
        coming: asyncio.Queue[Said] = asyncio.Queue()

        def report(said: Said) -> None:
            loop.call_soon_threadsafe(coming.put_nowait, said)

        asked = Asked((), request.wanted, report)
        watching: asyncio.Task[None] | None = None
        model: TextModel | None = None
        try:
            model = await loop.run_in_executor(self._executor, self._ask, request, asked)
            watching = loop.create_task(_watch(receive, asked, model))
            if request.streams:
                await _stream(coming, response, send, has_usage=request.has_usage)
            else:
                await _whole(coming, response, send)
        finally:
            asked.flag.set()  # for one that was left
            if watching is not None and model is not None:
                watching.cancel()
                model.worker.wake()

    async def _encode(self, request: EncoderRequest, receive: Receive, send: Send) -> None:
        """Send vectors or scores; runs end between two steps once the client leaves."""
        loop, flag = asyncio.get_running_loop(), StopFlag()
        watching = loop.create_task(_watch_encoding(receive, flag))
        try:
            encoders = self._models.encoders
            body = await loop.run_in_executor(self._executor, request.answer, encoders, flag)
        finally:
            flag.set()
            watching.cancel()
        await _send(send, 200, body, [JSON])

    def _ask(self, request: TextRequest, asked: Asked) -> TextModel:
        """Find the tokens of a prompt and ask for its answer; may take long.

        Raises:
            ApiError: The prompt does not fit.
            BusyError: Too many requests wait.
            OipError: The model is not there.
        """
        found = self._models.find(request.model)
        asked.prompt = _tokens(request, found)
        if request.wanted.schema is not None:
            _check_schema(request.wanted.schema, found)
        if not asked.flag.is_set():
            self._models.ask(request.model, asked)
        return found


def _tokens(request: TextRequest, model: TextModel) -> list[int]:
    """Return the tokens of a prompt.

    Raises:
        ApiError: They have no room in the context, or are not the model's.
    """
    tokenizer, context, prompt = model.tokenizer, model.worker.context, request.prompt
    if not isinstance(prompt, str) and not request.is_chat:
        tokens = [token for token in prompt if isinstance(token, int)]
        if not all(0 <= token < tokenizer.size for token in tokens):
            raise ApiError(400, f"tokens must be from 0 to {tokenizer.size - 1}", param="prompt")
    elif isinstance(prompt, str):
        _in_context(lambda: check_size(prompt, tokenizer, context))
        tokens = tokenizer.encode(prompt, end=False)
    else:
        chat = tokenizer.chat([each for each in prompt if isinstance(each, dict)])
        _in_context(lambda: check_size(chat, tokenizer, context))
        tokens = tokenizer.encode_chat(chat)
    _in_context(lambda: check_prompt(len(tokens), 0, context))
    return tokens


def _check_schema(schema: str, model: TextModel) -> None:
    """Compile a schema, in a thread of the request rather than the model's.

    Raises:
        ApiError: It cannot be followed.
    """
    try:
        model.tokenizer.follow(schema)
    except InputError as error:
        raise ApiError(400, str(error), param="response_format") from None


def _in_context(check: Callable[[], None]) -> None:
    """Run a check of a prompt's length.

    Raises:
        ApiError: The prompt has no room in the context.
    """
    try:
        check()
    except InputError as error:
        raise ApiError(400, str(error), code="context_length_exceeded") from None


async def _whole(coming: "asyncio.Queue[Said]", response: Response, send: Send) -> None:
    """Send an answer once it has ended."""
    parts = []
    while True:
        said = await coming.get()
        if isinstance(said, Ended):
            break
        parts.append(said)
    if said.error is not None:
        raise said.error
    await _send(send, 200, response.whole("".join(parts), said), [JSON])


async def _stream(
    coming: "asyncio.Queue[Said]", response: Response, send: Send, *, has_usage: bool
) -> None:
    """Send pieces as they come; an error before the first is one of HTTP."""
    said = await coming.get()
    if isinstance(said, Ended) and said.error is not None:
        raise said.error
    await send({"type": "http.response.start", "status": 200, "headers": list(EVENTS)})
    await _part(send, response.begun())
    while isinstance(said, str):
        await _part(send, response.piece(said))
        said = await coming.get()
    if said.error is None:
        last = response.ended(said, has_usage=has_usage)
    else:
        last = response.failed(api_error(said.error) or ApiError(500, "internal error"))
    await send({"type": "http.response.body", "body": last, "more_body": False})


async def _watch(receive: Receive, asked: Asked, model: TextModel) -> None:
    """End an answer once its client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
    asked.flag.set()
    model.worker.wake()


async def _watch_encoding(receive: Receive, flag: StopFlag) -> None:
    """Set a flag once a client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
    flag.set()


async def _part(send: Send, body: bytes) -> None:
    if body:
        await send({"type": "http.response.body", "body": body, "more_body": True})


async def _send(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    length = (b"Content-Length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [length, *headers]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
