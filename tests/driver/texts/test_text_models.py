"""Language models of a repository."""

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

from tests.driver.texts.scripted import Waiting
from tests.models import parse
from tests.text.vocabularies import chat_model
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.repository import Repository
from tightship.driver.texts.text_limits import TextLimits
from tightship.driver.texts.text_models import TextModels


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    (tmp_path / "chat.gguf").write_bytes(chat_model())
    onnx.save(parse("neg (float[2] x) => (float[2] y) { y = Neg(x) }"), tmp_path / "neg.onnx")
    given = {path.stem: ModelSource(path) for path in sorted(tmp_path.iterdir())}
    found = Repository(lambda: given)
    for name in given:
        found.load(name)
    yield found
    found.close()


def test_models_with_a_vocabulary_answer(repository: Repository) -> None:
    models = TextModels(repository, TextLimits(sessions=2))
    assert models.names == ["chat"]
    models.prepare()
    request = Waiting(max_tokens=2)
    assert models.ask("chat", request.asked) is models.find("chat")
    assert request.end().tokens <= 2
    for name in ("neg", "other"):
        with pytest.raises(OipError, match=f"{name}"):
            models.find(name)
        with pytest.raises(OipError):
            models.ask(name, Waiting().asked)
    models.close()


def test_a_model_that_is_loaded_again_gets_new_sessions(repository: Repository) -> None:
    models = TextModels(repository, TextLimits(sessions=1))
    first = models.find("chat")
    request = Waiting(max_tokens=8)
    models.ask("chat", request.asked)
    repository.load("chat")  # waits for the answer
    assert request.end().error is None
    first.worker.join()
    assert models.find("chat") is not first
    repository.unload("chat")
    with pytest.raises(OipError):
        models.find("chat")
    models.close()
