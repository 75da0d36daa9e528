"""Folders in Triton's layout: which versions are served, from which files, with what."""

import os

import pytest

from tests.driver.oip.triton_repository import write_model, write_version
from tightship.driver.oip.model_folder import ModelFolder, model_folders
from tightship.errors import InputError


@pytest.fixture
def folder(tmp_path):
    return write_model(tmp_path, "added", (1, 2, 10))


def versions(folder, more="", config=None):
    (folder / "config.pbtxt").write_text(more)
    return ModelFolder(folder).versions(config)


def test_the_policy_chooses_versions_by_number(folder):
    assert list(versions(folder)) == ["10"]
    assert list(versions(folder, "version_policy { latest { num_versions: 2 } }")) == ["2", "10"]
    assert list(versions(folder, "version_policy { all {} }")) == ["1", "2", "10"]
    specific = "version_policy { specific { versions: [2, 1] } }"
    assert list(versions(folder, specific)) == ["1", "2"]
    given = '{"version_policy": {"specific": {"versions": [2]}}}'
    assert list(versions(folder, specific, given)) == ["2"]
    with pytest.raises(InputError, match="names version 3; the folder has 1, 2, 10"):
        versions(folder, "version_policy { specific { versions: [3] } }")


def test_folders_that_are_no_versions_are_left_out(folder):
    for name in ("0", "01", "-1", "a", "1.5", "¹", "9" * 30):
        (folder / name).mkdir()
    (folder / "11").write_text("a file")
    assert list(versions(folder, "version_policy { all {} }")) == ["1", "2", "10"]


def test_a_model_without_configuration_or_versions(tmp_path):
    write_version(tmp_path / "added", 3)
    (source,) = ModelFolder(tmp_path / "added").versions().values()
    assert source.config.max_batch_size == 0
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="At least one version must be available"):
        ModelFolder(tmp_path / "empty").versions()


def test_parameters_are_arguments_of_load(folder):
    def parameter(key, value):
        return f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'

    both = parameter("intra_op_thread_count", 2) + parameter("max_memory", "1GiB")
    (source,) = versions(folder, both).values()
    assert (source.threads, source.max_memory) == (2, "1GiB")
    for wrong in ("0", "many", "-1", "9" * 20, ""):
        with pytest.raises(InputError, match=f"`{wrong}`; it must be a number of threads"):
            versions(folder, parameter("intra_op_thread_count", wrong))


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ('name: "other"', "the name `other`; its folder is `added`"),
        ("ensemble_scheduling {}", "`config.pbtxt`: .*`ensemble_scheduling`"),
        ("#" * (2 << 20), "`config.pbtxt` has more than 1048576 bytes"),
    ],
)
def test_what_does_not_fit_a_folder_is_named(folder, more, match):
    with pytest.raises(InputError, match=match):
        versions(folder, more)


def test_a_configuration_that_is_no_text_is_named(folder):
    (folder / "config.pbtxt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not text in UTF-8"):
        ModelFolder(folder).versions()


def test_the_state_of_the_files_changes_with_any_of_them(folder):
    model = ModelFolder(folder)
    known = [model.found()]
    write_version(folder, 11)
    known.append(model.found())
    (folder / "11" / "weights.bin").write_bytes(b"data")
    known.append(model.found())
    os.utime(folder / "config.pbtxt", ns=(1, 1))
    known.append(model.found())
    assert len(set(known)) == 4
    assert model.found() == known[-1]


def test_a_repository_has_a_model_per_folder(folder):
    (folder.parent / ".hidden").mkdir()
    (folder.parent / "file.txt").write_text("")
    assert list(model_folders(folder.parent, lambda *_: {})) == ["added"]
    with pytest.raises(InputError, match="cannot be read"):
        model_folders(folder.parent / "none", lambda *_: {})
