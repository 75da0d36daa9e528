"""Parameters of calls that load and unload models: those that are known, and all others."""

import pytest

from tightship.driver.oip.load_parameters import check_unload, config_given
from tightship.driver.oip.refusal import OipError


def test_a_configuration_is_the_only_parameter_of_a_load():
    assert config_given("m", {}) is None
    assert config_given("m", {"config": "{}"}) == "{}"
    for parameters, match in (
        ({"config": b"{}"}, "must be a text"),
        ({"config": {}}, "must be a text"),
        ({"file:1/model.onnx": b""}, "files in a call"),
        ({"verbose\n": True}, r"unknown parameter 'verbose\?'"),
    ):
        with pytest.raises(OipError, match=match):
            config_given("m", parameters)


def test_dependents_are_the_only_parameter_of_an_unload():
    check_unload("m", {})
    check_unload("m", {"unload_dependents": True})
    with pytest.raises(OipError, match="unknown parameter 'config'"):
        check_unload("m", {"config": "{}"})
