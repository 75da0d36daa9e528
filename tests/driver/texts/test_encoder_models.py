"""Encoders of a repository."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.embedding.exports import exported
from tests.frontend.gguf.encoders import embedding_model, encoder, ids_of, vector
from tests.text.vocabularies import chat_model
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.repository import Repository
from tightship.driver.texts.encoder_models import Encoder, EncoderModels
from tightship.driver.texts.text_limits import TextLimits
from tightship.driver.texts.text_models import TextModels
from tightship.driver.texts.text_worker import BusyError
from tightship.embedding import Embedder, Reranker


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    files = {"chat": chat_model(), "vectors": embedding_model(),
             "pairs": embedding_model(pooling=4, labels=1)}  # fmt: skip
    given = {}
    for name, data in files.items():
        (tmp_path / f"{name}.gguf").write_bytes(data)
        given[name] = ModelSource(tmp_path / f"{name}.gguf")
    given["export"] = ModelSource(exported(tmp_path, encoder()))
    found = Repository(lambda: given)
    for name in given:
        found.load(name)
    yield found
    found.close()


def kind(encoder: Encoder) -> type[Encoder]:
    return type(encoder)


def vector_of(encoder: Encoder) -> NDArray[np.float32]:
    assert isinstance(encoder, Embedder)
    return encoder(["the cat"])


def test_encoders_answer_by_what_they_give(repository: Repository) -> None:
    models = TextModels(repository, TextLimits(sessions=1))
    models.prepare()
    assert models.names == ["chat"]
    assert models.encoders.names == ["vectors", "pairs", "export"]
    assert models.encoders.answer("pairs", kind) is Reranker
    wanted = vector(encoder(), ids_of("the cat"))
    for name in ("vectors", "export"):
        found = models.encoders.answer(name, vector_of)
        np.testing.assert_allclose(found[0], wanted, atol=1e-6)
    for name in ("chat", "other"):
        with pytest.raises(OipError, match=name):
            models.encoders.answer(name, kind)
    with pytest.raises(OipError, match="`vectors` is an encoder; use /v1/embeddings"):
        models.find("vectors")
    models.close()


def test_a_model_that_says_no_pooling_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "silent.gguf"
    path.write_bytes(embedding_model(pooling=None))
    repository = Repository(lambda: {"silent": ModelSource(path)})
    repository.load("silent")
    EncoderModels(repository, TextLimits()).prepare()
    assert "give `pooling`" in caplog.text
    models = EncoderModels(repository, TextLimits(pooling="cls"))
    models.prepare()
    assert models.answer("silent", lambda each: getattr(each, "pooling", "")) == "cls"
    repository.close()


def test_more_requests_than_may_wait_are_refused(repository: Repository) -> None:
    models = EncoderModels(repository, TextLimits(waiting=0))
    entered, leave = threading.Event(), threading.Event()

    def wait(found: Encoder) -> type[Encoder]:
        entered.set()
        assert leave.wait(20)
        return kind(found)

    thread = threading.Thread(target=models.answer, args=("vectors", wait))
    thread.start()
    assert entered.wait(20)
    with pytest.raises(BusyError, match="1 requests for vectors or scores wait"):
        models.answer("pairs", kind)
    leave.set()
    thread.join()
    assert models.answer("pairs", kind) is Reranker


def test_a_model_that_is_loaded_again_has_new_programs(repository: Repository) -> None:
    models = EncoderModels(repository, TextLimits())
    assert models.answer("vectors", kind) is Embedder
    repository.load("vectors")
    assert not models._made
    assert models.answer("vectors", kind) is Embedder
    repository.unload("vectors")
    with pytest.raises(OipError):
        models.answer("vectors", kind)
