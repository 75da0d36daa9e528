"""`tightship serve` with a language model, called by OpenAI's own client."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from tests.driver.oip.serve_process import Serve, serve, settles
from tests.text.vocabularies import chat_model

TOKEN = "a-token-of-32-letters-and-digits"
CHAT = {"model": "chat", "messages": [{"role": "user", "content": "the"}], "temperature": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "chat.gguf").write_bytes(chat_model())
    tokens = folder / "tokens"
    tokens.write_text(f"me {TOKEN}\n")
    tokens.chmod(0o600)
    options = ("--token-file", tokens, "--sessions", "2", "--waiting", "1", "--context", "64")
    with serve(folder / "chat.gguf", *options) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Serve) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"http://{server.http}/v1", api_key=TOKEN, max_retries=0, timeout=30
    ) as found:
        yield found


def test_a_chat_at_once_and_in_pieces(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(**CHAT, max_tokens=6)
    text = whole.choices[0].message.content
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (4, 6)
    stream = client.chat.completions.create(
        **CHAT, max_tokens=6, stream=True, stream_options={"include_usage": True}
    )
    *pieces, last = list(stream)
    assert "".join(each.choices[0].delta.content or "" for each in pieces) == text
    assert pieces[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert last.usage.total_tokens == 10


def test_a_completion_and_the_list_of_models(client: openai.OpenAI) -> None:
    found = client.completions.create(model="chat", prompt="the in", temperature=0, max_tokens=3)
    pieces = client.completions.create(
        model="chat", prompt="the in", temperature=0, max_tokens=3, stream=True
    )
    assert "".join(each.choices[0].text for each in pieces) == found.choices[0].text
    assert [each.id for each in client.models.list()] == ["chat"]
    assert client.models.retrieve("chat").owned_by == "tightship"


def test_refusals_are_the_clients_own_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="`tools` is not supported"):
        client.chat.completions.create(**CHAT, tools=[{"type": "function"}])
    with pytest.raises(openai.BadRequestError, match="81 tokens; the context holds 64"):
        client.completions.create(model="chat", prompt="in" * 80)
    with pytest.raises(openai.NotFoundError, match="'other' is not found"):
        client.chat.completions.create(**{**CHAT, "model": "other"})
    wrong = client.with_options(api_key="another-token-of-some-letters")
    with pytest.raises(openai.AuthenticationError):
        wrong.models.list()


def test_a_client_that_leaves_frees_its_session(client: openai.OpenAI) -> None:
    for _ in range(3):
        stream = client.chat.completions.create(**CHAT, stream=True)
        next(iter(stream))
        stream.close()
    began = time.monotonic()
    client.chat.completions.create(**CHAT, max_tokens=1)
    assert time.monotonic() - began < 10


def test_more_requests_than_may_wait_are_told_when_to_come_again(client: openai.OpenAI) -> None:
    def ask(_: int) -> float | None:
        try:
            client.chat.completions.create(**CHAT)
        except openai.RateLimitError as error:
            return float(error.response.headers["retry-after"])
        return None

    with ThreadPoolExecutor(24) as threads:
        waits = list(threads.map(ask, range(48)))
    assert None in waits
    refused = [each for each in waits if each is not None]
    assert refused
    assert min(refused) >= 1


def test_answers_leave_no_memory_behind(client: openai.OpenAI, server: Serve) -> None:
    client.chat.completions.create(**CHAT)
    before = server.anonymous_bytes
    for _ in range(20):
        client.chat.completions.create(**CHAT)
    assert settles(lambda: server.anonymous_bytes, before + (2 << 20)) <= before + (2 << 20)
