"""Versions of models in a repository: which are served, kept, replaced and withdrawn."""

import shutil

import numpy as np
import pytest

from tests.driver.oip.triton_repository import write_model, write_version
from tightship.driver.oip.model_folder import model_folders
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.repository import Repository

ALL = "version_policy { all {} }"
X = np.zeros((1, 4), np.float32)


@pytest.fixture
def models(tmp_path):
    """A folder with the versions 1 and 2 of a model, both of which its policy serves."""
    write_model(tmp_path, "added", (1, 2), ALL)
    return tmp_path


@pytest.fixture
def repository(models):
    found = Repository(lambda: model_folders(models, lambda *_: {}))
    found.load("added")
    yield found
    found.close()


def answer(repository, version=None):
    with repository.used("added", version) as served:
        return served.version, served.model.run({"x": X})["y"][0, 0]


def index(repository):
    return [(each["version"], each["state"]) for each in repository.index()]


def configure(models, more):
    write_model(models, "added", (), more)


def test_the_greatest_version_is_meant_unless_another_is_named(repository):
    for version in (None, "", "-1", "2"):
        assert answer(repository, version) == ("2", 2)
    assert answer(repository, "1") == ("1", 1)
    with pytest.raises(OipError, match="version 3 is not found"):
        repository.served("added", "3")
    assert repository.served_versions("added") == ("1", "2")
    assert repository.hold("added") is repository.served("added").model
    assert set(repository.hold_all()) == {"added/1", "added/2"}
    for model in (*repository.hold_all().values(), repository.served("added").model):
        repository.release(model)


def test_a_version_that_comes_later_leaves_the_others_loaded(repository, models):
    before = {each: repository.served("added", each).model for each in ("1", "2")}
    withdrawn = []
    repository.on_withdrawn.append(withdrawn.append)
    write_version(models / "added", 10)
    repository.load("added")
    assert answer(repository) == ("10", 10)
    for version, model in before.items():
        assert repository.served("added", version).model is model
    assert withdrawn == [before["2"]]  # which the name alone no longer means


def test_another_policy_loads_nothing_again(repository, models):
    before = repository.served("added", "1").model
    configure(models, "version_policy { specific { versions: 1 } }")
    repository.load("added")
    assert repository.served("added").model is before
    assert repository.served("added").config.policy.specific == (1,)
    assert index(repository) == [("1", "READY"), ("2", "UNAVAILABLE")]
    configure(models, ALL)
    repository.load("added")
    assert answer(repository) == ("2", 2)


def test_a_file_that_changes_is_loaded_again(repository, models):
    first, second = (repository.served("added", each).model for each in ("1", "2"))
    write_version(models / "added", 1, 7)
    repository.load("added")
    assert answer(repository, "1") == ("1", 7)
    assert first.is_closed
    assert repository.served("added", "2").model is second


@pytest.mark.parametrize("more", ["foo: 1", ALL + 'input { name: "z" dims: 1 }', ""])
def test_a_load_that_fails_leaves_every_version(repository, models, more):
    if more:
        configure(models, more)
    write_version(models / "added", 1, 7)
    (models / "added" / "3").mkdir()
    (models / "added" / "3" / "model.onnx").write_bytes(b"no model")
    with pytest.raises(OipError, match="failed to load 'added'"):
        repository.load("added")
    assert answer(repository, "1") == ("1", 1)
    assert answer(repository) == ("2", 2)
    assert index(repository)[:2] == [("1", "READY"), ("2", "READY")]


def test_a_first_load_serves_the_versions_that_can_be(models):
    (models / "added" / "2" / "model.onnx").write_bytes(b"no model")
    repository = Repository(lambda: model_folders(models, lambda *_: {}))
    with pytest.raises(OipError, match="version 2: "):
        repository.load("added")
    assert answer(repository) == ("1", 1)
    assert index(repository) == [("1", "READY"), ("2", "UNAVAILABLE")]
    write_version(models / "added", 2)
    repository.load("added")
    assert answer(repository) == ("2", 2)
    repository.close()


def test_a_configuration_of_a_call_holds_until_the_next_load(repository):
    one = '{"version_policy": {"specific": {"versions": [1]}}, "max_batch_size": 3}'
    repository.load("added", one)
    assert answer(repository) == ("1", 1)
    assert repository.served("added").config.max_batch_size == 3
    with pytest.raises(OipError, match="unknown field `foo`"):
        repository.load("added", '{"foo": 1}')
    assert answer(repository) == ("1", 1)
    repository.load("added")
    assert repository.served_versions("added") == ("1", "2")
    assert repository.served("added").config.max_batch_size == 8


def test_unloading_closes_every_version(repository):
    models = [repository.served("added", each).model for each in ("1", "2")]
    repository.unload("added")
    assert all(each.is_closed for each in models)
    assert index(repository) == [("1", "UNAVAILABLE"), ("2", "UNAVAILABLE")]
    for version in (None, "1"):
        with pytest.raises(OipError, match="not ready"):
            repository.served("added", version)


def test_looking_finds_what_comes_changes_and_goes(repository, models):
    kept = repository.served("added", "2").model
    assert repository.poll() == []
    write_model(models, "other")
    write_version(models / "added", 1, 5)
    assert repository.poll() == []
    assert answer(repository, "1") == ("1", 5)
    assert repository.served("added", "2").model is kept
    assert repository.is_ready("other")
    configure(models, "foo: 1")
    (failure,) = repository.poll()
    assert "unknown field `foo`" in str(failure)
    assert repository.poll() == []  # it is tried again once it changes
    assert answer(repository) == ("2", 2)
    configure(models, ALL)
    shutil.rmtree(models / "other")
    shutil.rmtree(models / "added" / "2")
    assert repository.poll() == []
    assert not repository.is_ready("other")
    assert kept.is_closed
    assert answer(repository) == ("1", 5)
    write_model(models, "other")
    repository.poll()
    assert repository.is_ready("other")


def test_a_model_that_was_never_loaded_has_no_version(models):
    repository = Repository(lambda: model_folders(models, lambda *_: {}))
    assert repository.index() == [{"name": "added", "version": "", "state": "UNAVAILABLE"}]
    configure(models, "foo: 1")
    with pytest.raises(OipError):
        repository.load("added")
    (row,) = repository.index()
    assert "unknown field" in row["reason"]


def test_metrics_of_a_version_outlive_its_model(repository, models):
    repository.served("added", "1").metrics.fail(1)
    write_version(models / "added", 1, 7)
    repository.load("added")
    assert repository.counts("added", "1").fail_count == 1
    assert repository.counts("added").fail_count == 0
