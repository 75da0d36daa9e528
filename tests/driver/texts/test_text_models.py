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
from tightship.prepared_cache import entries


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
    joint = models.find("chat").worker._slots.joint
    assert joint is not None
    assert joint.programs.count == joint.programs.chunk.bit_length()
    request = Waiting(max_tokens=2)
    assert models.ask("chat", request.asked) is models.find("chat")
    assert request.end().tokens <= 2
    for name in ("neg", "other"):
        with pytest.raises(OipError, match=f"{name}"):
            models.find(name)
        with pytest.raises(OipError):
            models.ask(name, Waiting().asked)
    models.close()


def test_a_shared_model_answers_by_stored_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    path = tmp_path / "chat.gguf"
    path.write_bytes(chat_model())
    repository = Repository(lambda: {"chat": ModelSource(path, share=True)})
    repository.load("chat")
    models = TextModels(repository, TextLimits(sessions=4))
    models.prepare()
    joint = models.find("chat").worker._slots.joint
    assert joint is not None
    assert joint.programs.stored is not None
    assert sorted(joint._made) == [2, 4]
    stored = [entry.about.get("joint") for entry in entries(tmp_path / "prepared")]
    assert sorted(map(str, stored)) == ["2", "4", "None", "None"]
    request = Waiting(max_tokens=2)
    models.ask("chat", request.asked)
    assert request.end().tokens <= 2
    models.close()
    repository.close()


def test_a_model_without_a_known_vocabulary_is_logged_and_others_are_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = chat_model()
    place = data.index(b"tokenizer.ggml.model") + len("tokenizer.ggml.model") + 12
    odd = data[:place] + b"other" + data[place + 5 :]
    given = {}
    for name, raw in (("chat", data), ("odd", odd)):
        (tmp_path / f"{name}.gguf").write_bytes(raw)
        given[name] = ModelSource(tmp_path / f"{name}.gguf")
    repository = Repository(lambda: given)
    for name in given:
        repository.load(name)
    models = TextModels(repository, TextLimits(sessions=1))
    models.prepare()
    assert "a vocabulary of the kind `other`, which is not supported" in caplog.text
    assert models.find("chat").worker.context == 64
    models.close()
    repository.close()


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
