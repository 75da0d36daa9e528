"""Requests for vectors and scores, and their responses."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontend.gguf.encoders import embedding_model
from tightship import StopFlag, StoppedError
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.repository import Repository
from tightship.driver.openai.encoder_request import read_embedding, read_reranking
from tightship.driver.openai.openai_error import ApiError
from tightship.driver.texts.encoder_models import EncoderModels
from tightship.driver.texts.text_limits import TextLimits


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EncoderModels]:
    folder: Path = tmp_path_factory.mktemp("encoders")
    (folder / "e.gguf").write_bytes(embedding_model())
    (folder / "r.gguf").write_bytes(embedding_model(pooling=4, labels=1))
    given = {name: ModelSource(folder / f"{name}.gguf") for name in ("e", "r")}
    repository = Repository(lambda: given)
    for name in given:
        repository.load(name)
    yield EncoderModels(repository, TextLimits())
    repository.close()


def embedded(models: EncoderModels, **fields: Any) -> Any:
    body = json.dumps({"model": "e", **fields}).encode()
    return json.loads(read_embedding(body).answer(models, StopFlag()))


def ranked(models: EncoderModels, **fields: Any) -> Any:
    body = json.dumps({"model": "r", "query": "the cat", **fields}).encode()
    return json.loads(read_reranking(body).answer(models, StopFlag()))


def test_vectors_come_as_numbers_or_as_bytes(models: EncoderModels) -> None:
    plain = embedded(models, input=["the cat", "a dog ran"], dimensions=64)
    assert plain["usage"] == {"prompt_tokens": 9, "total_tokens": 9}
    assert [row["index"] for row in plain["data"]] == [0, 1]
    packed = embedded(models, input=["the cat", "a dog ran"], encoding_format="base64")
    for row, other in zip(plain["data"], packed["data"], strict=True):
        raw = np.frombuffer(base64.b64decode(other["embedding"]), "<f4")
        np.testing.assert_array_equal(raw, np.float32(row["embedding"]))
    one = embedded(models, input="the cat")
    assert one["data"] == plain["data"][:1]
    numbers = embedded(models, input=[[2, 5, 6, 3], [2, 12, 3]])
    assert numbers["data"][0] == plain["data"][0]
    assert embedded(models, input=[2, 5, 6, 3])["data"] == one["data"]


def test_texts_come_in_the_order_of_their_scores(models: EncoderModels) -> None:
    given = ["a dog ran", "a mat", "the cat sat"]
    found = ranked(models, documents=[given[0], {"text": given[1]}, given[2]])
    scores = [row["relevance_score"] for row in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)
    assert sorted(row["index"] for row in found["results"]) == [0, 1, 2]
    best = ranked(models, documents=given, top_n=1, return_documents=True)["results"]
    assert best == [{**found["results"][0], "document": {"text": given[best[0]["index"]]}}]


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        ({"input": []}, "input", "a list of 1 to 2048"),
        ({"input": [""]}, "input[0]", "a text that is not empty"),
        ({"input": ["a"] * 2049}, "input", "a list of 1 to 2048"),
        ({"input": [["a"]]}, "input[0]", "numbers of tokens"),
        ({"input": 3}, "input", "must be"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "`float` or `base64`"),
        ({"input": "a", "dimensions": 32}, "dimensions", "have 64 elements"),
        ({"input": "a", "truncate": True}, "truncate", "not supported"),
        ({"input": ["a", "cat " * 70]}, "input", "Text 1 has 72 tokens; the model takes 64"),
        ({"input": [[99]]}, "input", "tokens are 0 to 17"),
        ({"input": "a", "model": "r"}, None, "use /v1/rerank"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    models: EncoderModels, fields: dict[str, Any], param: str | None, said: str
) -> None:
    with pytest.raises(ApiError) as raised:
        embedded(models, **fields)
    assert (raised.value.status, raised.value.param) == (400, param)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"documents": []}, "a list of 1 to 2048 texts"),
        ({"documents": [3]}, "a text, or an object with `text`"),
        ({"documents": ["a"], "top_n": 0}, "at least 1"),
        ({"documents": ["cat " * 70]}, "the model takes 64"),
        ({"documents": ["a"], "model": "e"}, "use /v1/embeddings"),
    ],
)
def test_a_wrong_question_is_refused(
    models: EncoderModels, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ApiError, match=said):
        ranked(models, **fields)


def test_texts_and_tokens_are_counted(models: EncoderModels) -> None:
    def counted() -> dict[str, int]:
        lines = [line.rpartition(" ") for line in models.metrics().splitlines() if line[0] != "#"]
        return {name: int(value) for name, _, value in lines}

    embedded(models, input="a")
    ranked(models, documents=["a"])
    before = counted()
    embedded(models, input=["the cat", "a"])
    ranked(models, documents=["a dog"])
    gained = {name: value - before[name] for name, value in counted().items()}
    assert gained == {
        'tightship_encoder_texts{model="e"}': 2, 'tightship_encoder_texts{model="r"}': 1,
        'tightship_encoder_tokens{model="e"}': 7, 'tightship_encoder_tokens{model="r"}': 7,
        "tightship_encoder_pending": 0,
    }  # fmt: skip


def test_a_client_that_left_ends_its_runs(models: EncoderModels) -> None:
    flag = StopFlag()
    flag.set()
    with pytest.raises(StoppedError):
        read_embedding(b'{"model": "e", "input": "a"}').answer(models, flag)
