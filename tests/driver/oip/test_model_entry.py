"""Versions of a model: which one a client means, and what the index says of each."""

from types import SimpleNamespace

import pytest

from tightship.driver.oip.model_entry import ModelEntry, State, VersionState
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code


def entry(served=(), unavailable=()):
    found = ModelEntry("m", order=tuple(served))
    for each in served:
        found.states[each] = VersionState(State.READY, served=SimpleNamespace(version=each))
    for each in unavailable:
        found.states[each] = VersionState(reason="broken")
    return found


def test_versions_are_numbers():
    found = entry(served=("9", "10"), unavailable=("2", "11"))
    assert found.versions == ("2", "9", "10", "11")
    for version in (None, "", "-1", "10"):
        assert found.served(version).version == "10"
    assert found.served("9").version == "9"
    assert found.state(None) is found.states["10"]
    assert entry(unavailable=("2", "11")).state(None).reason == "broken"


@pytest.mark.parametrize(
    ("served", "unavailable", "version", "code"),
    [
        ("", "", None, Code.UNAVAILABLE),
        ("1", "", "2", Code.NOT_FOUND),
        ("1", "", "one", Code.NOT_FOUND),
        ("1", "2", "2", Code.UNAVAILABLE),
    ],
)
def test_a_version_that_is_not_there_is_refused(served, unavailable, version, code):
    with pytest.raises(OipError, match="Request for unknown model: 'm'") as caught:
        entry(served, unavailable).served(version)
    assert caught.value.code is code


def test_the_index_has_a_row_for_each_version():
    rows = entry(served=("10",), unavailable=("9",)).rows()
    assert rows == [
        {"name": "m", "version": "9", "state": "UNAVAILABLE", "reason": "broken"},
        {"name": "m", "version": "10", "state": "READY"},
    ]
    assert entry().rows() == [{"name": "m", "version": "", "state": "UNAVAILABLE"}]


def test_a_failure_is_noted_where_nothing_is_served():
    found = entry(served=("1",), unavailable=("2",))
    found.fail("it cannot be read")
    assert [each.reason for each in found.states.values()] == ["", "it cannot be read"]
