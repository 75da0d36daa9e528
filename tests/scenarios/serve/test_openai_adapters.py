"""`tightship serve` called by LangChain's and LiteLLM's adapters for OpenAI's API."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.driver.oip.serve_process import Serve, serve
from tests.frontend.gguf.encoders import embedding_model, encoder, ids_of, vector
from tests.text.vocabularies import chat_model

KEY = "none"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    folder: Path = tmp_path_factory.mktemp("texts")
    (folder / "chat.gguf").write_bytes(chat_model())
    (folder / "e.gguf").write_bytes(embedding_model())
    options = ("--sessions", "2", "--context", "64")
    with serve(folder / "chat.gguf", folder / "e.gguf", *options) as found:
        yield found


def base(server: Serve) -> str:
    return f"http://{server.http}/v1"


@pytest.mark.filterwarnings("ignore")  # of the adapters' own
def test_langchain_chats_streams_and_embeds(server: Serve) -> None:
    pytest.importorskip("langchain_openai")
    adapters: Any = import_module("langchain_openai")
    openai: Any = import_module("openai")
    with openai.DefaultHttpxClient() as client:  # the adapters leave their own open
        options = {"base_url": base(server), "api_key": KEY, "http_client": client}
        chat = adapters.ChatOpenAI(model="chat", temperature=0, max_tokens=6, **options)
        found = chat.invoke("the")
        assert found.usage_metadata["output_tokens"] == 6
        assert "".join(piece.content for piece in chat.stream("the")) == found.content
        embeddings = adapters.OpenAIEmbeddings(
            model="e", check_embedding_ctx_length=False, **options
        )
        vectors = embeddings.embed_documents(["the cat", "a dog ran"])
        wanted = [vector(encoder(), ids_of(text)) for text in ("the cat", "a dog ran")]
        np.testing.assert_allclose(vectors, wanted, atol=1e-6)
        np.testing.assert_allclose(embeddings.embed_query("the cat"), wanted[0], atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_litellm_chats_streams_and_embeds(server: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks another server
    pytest.importorskip("litellm")
    litellm: Any = import_module("litellm")
    options = {"api_base": base(server), "api_key": KEY}
    asked = {
        "model": "openai/chat", "messages": [{"role": "user", "content": "the"}],
        "temperature": 0, "max_tokens": 6, **options,
    }  # fmt: skip
    found = litellm.completion(**asked)
    assert found.usage.completion_tokens == 6
    pieces = litellm.completion(**asked, stream=True)
    text = "".join(each.choices[0].delta.content or "" for each in pieces)
    assert text == found.choices[0].message.content
    vectors = litellm.embedding(model="openai/e", input=["the cat"], **options).data
    wanted = vector(encoder(), ids_of("the cat"))
    np.testing.assert_allclose(vectors[0]["embedding"], wanted, atol=1e-6)
