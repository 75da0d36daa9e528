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


def test_a_text_is_generated_by_the_inference_protocol(app: App) -> None:
    fields = {"model": "chat", "prompt": "the in", "temperature": 0, "max_tokens": 3}
    text = json.loads(app.ask("/v1/completions", fields)[1])["choices"][0]["text"]
    asked = {"text_input": "the in", "id": "7", "parameters": {"temperature": 0, "max_tokens": 3}}
    for path in ("/v2/models/chat/generate", "/v2/models/chat/versions/1/generate"):
        status, body = app.ask(path, asked)
        said = json.loads(body)
        assert (status, said["text_output"], said["id"]) == (200, text, "7")
        assert said["model_name"] == "chat"
    status, body = app.ask("/v2/models/chat/generate_stream", {**asked, "stream": True})
    *events, _ = body.split(b"\n\n")
    pieces = [json.loads(each.removeprefix(b"data: "))["text_output"] for each in events]
    assert (status, "".join(pieces), len(pieces)) == (200, text, 3)


@pytest.mark.parametrize(
    ("path", "fields", "status", "said"),
    [
        ("other/generate", {"text_input": "a"}, 404, "'other' is not found"),
        ("chat/versions/2/generate", {"text_input": "a"}, 404, "version"),
        ("chat/generate", {}, 400, "`text_input` must be a text"),
        ("chat/generate", {"text_input": "a", "bad_words": ["b"]}, 400, "`bad_words` is not"),
        ("chat/generate", {"text_input": "a", "stream": True}, 400, "for `generate_stream`"),
        ("chat/generate_stream", {"text_input": "in" * 80}, 400, "the context holds 64"),
        ("chat/generate", None, 405, "takes POST"),
    ],
)
def test_a_call_that_cannot_be_answered_is_refused(
    app: App, path: str, fields: Any, status: int, said: str
) -> None:
    found, body = app.ask(f"/v2/models/{path}", fields)
    assert (found, said in json.loads(body)["error"]) == (status, True), body


def test_a_response_follows_a_schema(app: App) -> None:
    wanted = {"enum": ["the", "then"]}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": wanted}}
    status, body = app.ask(
        "/v1/chat/completions", chat(response_format=form, max_tokens=30, temperature=1)
    )
    if status == 200:
        assert json.loads(json.loads(body)["choices"][0]["message"]["content"]) in ("the", "then")
    bad = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "sun"}}}
    status, body = app.ask("/v1/chat/completions", chat(response_format=bad))
    assert (status, json.loads(body)["error"]["param"]) == (400, "response_format")


def test_answers_and_refusals_are_counted(app: App) -> None:
    def value(name: str) -> float:
        found = [line for line in app.models.metrics().splitlines() if line.startswith(name)]
        return float(found[0].split()[-1]) if found else 0

    names = [
        f"tightship_text_{each}" for each in ("prompt_tokens{", "completion_tokens{",
        'answers{model="chat",reason="length"}', "first_token_seconds_count{")
    ]  # fmt: skip
    app.ask("/v1/chat/completions", chat())
    before = [value(name) for name in names]
    app.ask("/v1/chat/completions", chat())
    gained = [value(name) - old for name, old in zip(names, before, strict=True)]
    assert gained == [4, 4, 1, 1]
    assert (value("tightship_text_sessions{"), value("tightship_text_running{")) == (2, 0)


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
