"""Calls for texts of the inference protocol."""

import json
from typing import Any

import pytest

from tightship.driver.openai.generate_call import GenerateCall
from tightship.driver.openai.openai_error import ApiError
from tightship.driver.texts.answer import Ended
from tightship.text import Sampling

END = Ended("stop")


def read(call: GenerateCall, **fields: Any) -> Any:
    return call.read(json.dumps({"text_input": "a", **fields}).encode())


def test_a_path_names_model_and_version() -> None:
    assert GenerateCall.of("/v2/models/m/generate") == GenerateCall("m", None, streams=False)
    found = GenerateCall.of("/v2/models/a%20b/versions/3/generate_stream")
    assert found == GenerateCall("a b", "3", streams=True)
    for path in ("/v2/models/m/infer", "/v2/models/m/n/generate", "/v1/models/m/generate"):
        assert GenerateCall.of(path) is None


def test_fields_may_be_parameters_and_have_other_names() -> None:
    call = GenerateCall("m", None, streams=True)
    request, _ = read(
        call,
        max_tokens=3,
        parameters={"temperature": 0, "random_seed": 5, "stop_words": ["x"], "stream": True,
                    "repetition_penalty": 1.5, "exclude_input_in_output": True},
    )  # fmt: skip
    assert (request.prompt, request.model, request.streams) == ("a", "m", True)
    assert request.wanted.sampling == Sampling(repeat_penalty=1.5, temperature=0, seed=5)
    assert (request.wanted.max_tokens, request.wanted.stop) == (3, ("x",))
    assert read(call)[0].wanted.max_tokens == 16


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"text_input": 3}, "text_input"), ({"id": 3}, "id"), ({"parameters": []}, "parameters"),
        ({"exclude_input_in_output": False}, "exclude_input_in_output"),
        ({"parameters": {"temperature": -1}}, "temperature"), ({"stop_words": 3}, "stop"),
        ({"parameters": {"max_tokens": 0}}, "max_tokens"), ({"images": []}, "images"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as found:
        read(GenerateCall("m", None, streams=False), **fields)
    if param != "parameters":
        assert found.value.param == param


def test_a_stream_has_an_event_for_each_piece() -> None:
    _, response = read(GenerateCall("m", "1", streams=True), id="7")
    said = json.loads(response.piece("x").removeprefix(b"data: "))
    assert said == {"id": "7", "model_name": "m", "model_version": "1", "text_output": "x"}
    assert response.ended(END, has_usage=False) == response.begun() == b""
    _, empty = read(GenerateCall("m", None, streams=True))
    assert json.loads(empty.ended(END, has_usage=False)[6:])["text_output"] == ""
    assert json.loads(empty.failed(ApiError(500, "no"))[6:]) == {"error": "no"}
