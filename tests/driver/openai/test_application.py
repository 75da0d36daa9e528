"""OpenAI's API as an application of ASGI, by hand."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.driver.test_run_permits import until
from tests.text.vocabularies import chat_model
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.repository import Repository
from tightship.driver.openai.application import OpenAiApplication
from tightship.driver.texts.text_limits import TextLimits
from tightship.driver.texts.text_models import TextModels

USER = [{"role": "user", "content": "the"}]


class App:
    """The application over one small model, and requests to it."""

    def __init__(self, folder: Path, executor: ThreadPoolExecutor, **limits: int) -> None:
        path = folder / "chat.gguf"
        path.write_bytes(chat_model())
        given = {"chat": ModelSource(path)}
        self.repository = Repository(lambda: given)
        self.repository.load("chat")
        self.models = TextModels(self.repository, TextLimits(**limits))
        self.made = OpenAiApplication(self.models, 1 << 16, executor)

    async def played(self, path: str, method: str, body: bytes, *, leaves: bool) -> list[Any]:
        said: list[Any] = []
        coming = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if coming:
                return coming.pop(0)
            if leaves:
                while self.models.find("chat").worker.load == (0, 0):
                    await asyncio.sleep(0.001)
                return {"type": "http.disconnect"}
            return await asyncio.Event().wait()

        async def send(message: Any) -> None:
            said.append(message)

        headers = [(b"content-length", b"%d" % len(body)), (b"host", b"127.0.0.1")]
        scope = {"type": "http", "method": method, "path": path, "headers": headers}
        await asyncio.wait_for(self.made(scope, receive, send), 20)
        return said

    def ask(self, path: str, fields: Any = None, *, leaves: bool = False) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        body = b"" if fields is None else json.dumps(fields).encode()
        method = "GET" if fields is None else "POST"
        start, *parts = asyncio.run(self.played(path, method, body, leaves=leaves))
        return start["status"], b"".join(part["body"] for part in parts)

    def close(self) -> None:
        self.models.close()
        self.repository.close()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with ThreadPoolExecutor(2) as threads:
        found = App(tmp_path_factory.mktemp("texts"), threads, sessions=2, waiting=1)
        yield found
        found.close()


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "chat", "messages": USER, "temperature": 0, "max_tokens": 4, **fields}


def test_a_chat_is_answered_at_once_or_in_pieces(app: App) -> None:
    status, body = app.ask("/v1/chat/completions", chat())
    said = json.loads(body)
    assert status == 200
    assert (said["usage"]["prompt_tokens"], said["usage"]["completion_tokens"]) == (4, 4)
    status, body = app.ask("/v1/chat/completions", chat(stream=True))
    *events, done, _ = body.split(b"\n\n")
    pieces = [json.loads(each[6:])["choices"][0]["delta"].get("content", "") for each in events]
    assert "".join(pieces) == said["choices"][0]["message"]["content"]
    assert done == b"data: [DONE]"


def test_a_text_goes_on(app: App) -> None:
    fields = {"model": "chat", "prompt": "the in", "temperature": 0, "max_tokens": 3}
    said = json.loads(app.ask("/v1/completions", fields)[1])
    numbers = {**fields, "prompt": [1, 19, 21]}
    assert json.loads(app.ask("/v1/completions", numbers)[1])["choices"] == said["choices"]
    status, body = app.ask("/v1/completions", {**fields, "prompt": [70]})
    assert (status, b"tokens must be from 0 to 69" in body) == (400, True)


def test_the_models_are_listed(app: App) -> None:
    status, body = app.ask("/v1/models")
    assert (status, [row["id"] for row in json.loads(body)["data"]]) == (200, ["chat"])
    assert json.loads(app.ask("/v1/models/chat")[1])["owned_by"] == "tightship"
    assert app.ask("/v1/models/other")[0] == 404


@pytest.mark.parametrize(
    ("path", "fields", "status", "said"),
    [
        ("/v1/chat/completions", chat(model="other"), 404, "model_not_found"),
        ("/v1/chat/completions", chat(tools=[{}]), 400, "unsupported_parameter"),
        ("/v1/chat/completions", None, 405, "takes POST"),
        ("/v1/embeddings", {"input": "a", "model": "chat"}, 404, "not a model that gives vectors"),
        ("/v1/images", {"prompt": "a"}, 404, "no resource is at"),
        ("/v1/chat/completions", {"messages": USER, "model": "x" * (1 << 16)}, 413, "may have"),
        ("/v1/completions", {"model": "chat", "prompt": "in" * 80}, 400,
         "has 81 tokens; the context holds 64"),
        ("/v1/completions", {"model": "chat", "prompt": "in" * 8000}, 400,
         "at least 2667 tokens; the context holds 64"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused(
    app: App, path: str, fields: Any, status: int, said: str
) -> None:
    found, body = app.ask(path, fields)
    assert (found, said in body.decode()) == (status, True), body


def test_a_client_that_leaves_frees_its_session(app: App) -> None:
    asked = chat(max_tokens=None, stream=True, repeat_penalty=1.0, temperature=2.0)
    app.ask("/v1/chat/completions", asked, leaves=True)
    until(lambda: app.models.find("chat").worker.load == (0, 0))


def test_a_page_of_another_server_may_not_call(app: App) -> None:
    scope = {"type": "http", "method": "GET", "path": "/v1/models",
             "headers": [(b"host", b"127.0.0.1"), (b"origin", b"http://evil.example")]}  # fmt: skip
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    asyncio.run(app.made(scope, receive, send))
    assert said[0]["status"] == 403
