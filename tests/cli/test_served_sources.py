"""Models by name from files, folders of files, and repositories in Triton's layout."""

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from tests.driver.oip.triton_repository import write_model
from tests.models import parse
from tightship.cli.served_sources import ServedSources
from tightship.errors import InputError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "files" / "relu.onnx"
    path.parent.mkdir()
    onnx.save(parse("m (float[n,4] x) => (float[n,4] y) { y = Relu(x) }"), path)
    return path


@pytest.fixture
def repository(tmp_path):
    found = tmp_path / "models"
    write_model(found, "added", (1, 2), "instance_group { count: 3 }")
    write_model(found, "broken", (1,), "foo: 1")
    return found


def test_files_and_repositories_are_served_together(file, repository):
    sources = ServedSources.of([file.parent], [repository], [("x", (2, 4))])
    assert list(sources()) == ["relu", "added", "broken"]
    (source,) = sources()["added"].versions().values()
    assert (Path(source.path).parent.name, source.shapes) == ("2", {"x": (2, 4)})
    assert sources.instance_count() == 3
    write_model(repository, "later")
    assert "later" in sources()


def test_a_shape_may_be_for_a_model_of_a_repository(repository):
    ServedSources.of([], [repository], [("added:x", (2, 4))])
    with pytest.raises(InputError, match=r"fits no input.*`added:x`"):
        ServedSources.of([], [repository], [("added:z", (2, 4))])


def test_two_models_of_one_name_are_refused(file, repository, tmp_path):
    write_model(repository, "relu")
    with pytest.raises(InputError, match="would both be called `relu`"):
        ServedSources.of([file], [repository], [])()
    write_model(tmp_path / "others", "added")
    with pytest.raises(InputError, match="would both be called `added`"):
        ServedSources.of([], [repository, tmp_path / "others"], [])


def test_a_repository_that_is_given_as_a_folder_of_files_is_recognized(repository):
    with pytest.raises(InputError, match=f"as `--model-repository {repository}`"):
        ServedSources.of([repository], [], [])


def test_language_models_alone_are_shared(tmp_path: Path) -> None:
    for name in ("chat.gguf", "relu.onnx"):
        (tmp_path / name).write_bytes(b"")
    sources = replace(ServedSources.of([tmp_path], [], []), share=True)()
    assert {name: source.share for name, source in sources.items()} == {"chat": True, "relu": False}
    rounded = replace(ServedSources.of([tmp_path], [], []), activations="int8")
    assert rounded.has_gguf
    types = {name: source.activations for name, source in rounded().items()}
    assert types == {"chat": "int8", "relu": None}
