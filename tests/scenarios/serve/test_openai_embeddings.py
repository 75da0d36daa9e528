"""`tightship serve` with encoders, called by OpenAI's own client."""

import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openai
import pytest

from tests.driver.oip.serve_process import Serve, serve, settles
from tests.embedding.exports import exported
from tests.embedding.texts import texts
from tests.frontend.gguf.encoders import embedding_model, encoder, ids_of, vector


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    folder = tmp_path_factory.mktemp("encoders")
    path = exported(folder, encoder())
    (folder / "e.gguf").write_bytes(embedding_model())
    (folder / "r.gguf").write_bytes(embedding_model(pooling=4, labels=1))
    options = ("--waiting", "64", "--max-memory", "64MiB")
    with serve(folder / "e.gguf", folder / "r.gguf", path, *options) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Serve) -> Iterator[openai.OpenAI]:
    base = f"http://{server.http}/v1"
    with openai.OpenAI(base_url=base, api_key="none", max_retries=0, timeout=30) as found:
        yield found


@pytest.mark.parametrize("name", ["e", "model"])
def test_vectors_come_in_either_form(client: openai.OpenAI, name: str) -> None:
    given = texts(30, 40)
    wanted = np.stack([vector(encoder(), ids_of(text)) for text in given])
    usual = client.embeddings.create(model=name, input=given)  # base64, by the client's choice
    plain = client.embeddings.create(model=name, input=given, encoding_format="float")
    for found in (usual, plain):
        vectors = [row.embedding for row in found.data]
        np.testing.assert_allclose(vectors, wanted, atol=1e-6)
    assert usual.usage.prompt_tokens == sum(len(ids_of(text)) for text in given)
    assert [each.id for each in client.models.list()] == ["e", "r", "model"]


def test_refusals_are_the_clients_own_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="have 64 elements") as raised:
        client.embeddings.create(model="e", input="a", dimensions=32)
    assert raised.value.param == "dimensions"
    with pytest.raises(openai.BadRequestError, match="has 72 tokens; the model takes 64"):
        client.embeddings.create(model="e", input="cat " * 70)
    with pytest.raises(openai.NotFoundError, match="use /v1/embeddings"):
        client.completions.create(model="e", prompt="a")


def test_texts_are_ranked(server: Serve) -> None:
    body = {"model": "r", "query": "the cat", "documents": ["a dog", "a mat"], "top_n": 1}
    request = urllib.request.Request(
        f"http://{server.http}/v1/rerank", json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        found = json.load(response)
    assert len(found["results"]) == 1


def test_many_clients_leave_no_memory_behind(client: openai.OpenAI, server: Serve) -> None:
    def ask(seed: int) -> int:
        return len(client.embeddings.create(model="e", input=texts(20, seed=seed)).data)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(ask, range(16))) == {20}
        before = server.anonymous_bytes
        assert set(threads.map(ask, range(64))) == {20}
    assert settles(lambda: server.anonymous_bytes, before + (3 << 20)) <= before + (3 << 20)
