"""A model is prepared once for a user; where that cannot be, one warning says why."""

import warnings
from pathlib import Path

import pytest

from tests import models
from tests.small_models import dense
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.library import open_library
from tightship.engine.stored import compatibility
from tightship.errors import FormatError, InputError
from tightship.loading.prepared_once import shared
from tightship.prepared_cache import entries

ALONE = "is loaded for this process alone: "


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models."""
    open_library()
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.delenv("TIGHTSHIP_CACHE_SIZE", raising=False)
    return tmp_path / "prepared"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense()[0])
    return path


def through(model: Path | bytes, settings: Settings | None = None) -> bytes | None:
    """The bytes of the model that come through the cache, or nothing."""

    def make(path: Path) -> None:
        path.write_bytes(model if isinstance(model, bytes) else model.read_bytes())

    return shared(model, settings or Settings(), make, lambda path, _: path.read_bytes())


def test_a_model_has_one_entry_whichever_way_it_is_given(
    folder: Path, model: Path, monkeypatch
) -> None:
    monkeypatch.chdir(model.parent)
    (model.parent / "link.onnx").symlink_to(model)
    for given in (model, Path("dense.onnx"), Path("link.onnx"), str(model), model.read_bytes()):
        content = Path(given) if isinstance(given, str) else given
        assert through(content) == model.read_bytes()
    digests = {entry.about["content"] for entry in entries(folder)}
    assert len(digests) == 2  # one for bytes, which have no size in front of them


@pytest.mark.parametrize(
    "other", [Settings(threads=2), Settings({"x": (2, 32)}), Settings(without=("fuse",))]
)
def test_other_settings_have_an_entry_of_their_own(
    folder: Path, model: Path, other: Settings
) -> None:
    for settings in (Settings(), other, other):
        through(model, settings)
    assert len(entries(folder)) == 2


def test_another_version_has_an_entry_of_its_own(folder: Path, model: Path, monkeypatch) -> None:
    through(model)
    monkeypatch.setattr(compatibility, "VERSION", "another")
    through(model)
    assert len(entries(folder)) == 2


def test_external_weights_are_part_of_a_model(folder: Path, tmp_path: Path) -> None:
    path = models.with_external_data(tmp_path)
    through(path)
    weights = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").write_bytes(weights[::-1])
    through(path)
    assert len(entries(folder)) == 2


def test_a_folder_that_cannot_be_made_is_said_to_be(model: Path, monkeypatch) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(model / "prepared"))
    with pytest.warns(RuntimeWarning, match=f"`dense.onnx` {ALONE}.*Not a directory") as said:
        assert through(model) is None
    assert len(said) == 1


def test_a_model_that_has_no_prepared_form_is_said_to(folder: Path, model: Path) -> None:
    def make(_: Path) -> None:
        raise InputError("Step `n` cannot be written.")

    with pytest.warns(RuntimeWarning, match=f"{ALONE}Step `n` cannot be written."):
        assert shared(model, Settings(), make, lambda path, _: path.read_bytes()) is None
    assert not any(entry.is_complete for entry in entries(folder))


def test_a_model_that_changes_meanwhile_is_not_kept(folder: Path, model: Path) -> None:
    def make(path: Path) -> None:
        path.write_bytes(b"old")
        model.write_bytes(dense(hidden=8)[0])

    with pytest.warns(RuntimeWarning, match=f"{ALONE}its file changed while it was prepared"):
        assert shared(model, Settings(), make, lambda path, _: path.read_bytes()) is None
    assert not any(entry.is_complete for entry in entries(folder))


def test_a_file_that_is_no_model_is_refused_as_ever(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.onnx` does not exist"):
        through_missing(tmp_path / "missing.onnx")
    (tmp_path / "text.onnx").write_bytes(b"text")
    with pytest.raises(FormatError, match=r"text\.onnx"):
        through(tmp_path / "text.onnx")


def through_missing(path: Path) -> None:
    shared(path, Settings(), lambda _: None, Path.read_bytes)


def test_nothing_is_said_where_it_works(model: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert through(model) == model.read_bytes()
