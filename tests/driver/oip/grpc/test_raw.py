"""Raw fields cut out of a message and put back, and those that refer to regions; else an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.driver.oip.grpc.infer import request_of
from tightship.driver.oip.grpc.raw import cut, joined
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.schema import message_classes

CLASSES = message_classes()
REQUEST = CLASSES["ModelInferRequest"]


@given(st.text(max_size=5), st.lists(st.binary(max_size=300)), st.booleans())
def test_a_message_is_cut_into_itself_and_its_raw_contents(name, raw, has_parameter):
    message = REQUEST(model_name=name, raw_input_contents=raw)
    if has_parameter:
        message.parameters["timeout"].int64_param = -1
        message.parameters["share"].double_param = 0.5
    rest, found = cut(message.SerializeToString(), 7)
    assert [bytes(each) for each in found] == raw
    del message.raw_input_contents[:]
    assert REQUEST.FromString(rest) == message
    message.raw_input_contents.extend(raw)
    assert REQUEST.FromString(joined(rest, 7, found)) == message


def test_raw_contents_are_found_wherever_they_stand():
    first = REQUEST(raw_input_contents=[b"a"]).SerializeToString()
    second = REQUEST(id="seven").SerializeToString()
    rest, found = cut(first + second + first, 7)
    assert rest == second
    assert [bytes(each) for each in found] == [b"a", b"a"]


@given(st.binary(max_size=40))
def test_bytes_that_are_no_message_are_refused_or_kept(data):
    try:
        rest, found = cut(data, 7)
    except OipError:
        return
    assert len(rest) + sum(map(len, found)) <= len(data)


@pytest.mark.parametrize("data", [b"\x3a\x05four", b"\x3a", b"\xff" * 11, b"\x0b", b"\x09\x00"])
def test_a_message_that_ends_within_a_field_is_refused(data):
    with pytest.raises(OipError):
        cut(data, 7)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"offset": 4}, "without 'shared_memory_region'"),
        ({"byte_size": 4}, "without 'shared_memory_region'"),
        ({"region": "r"}, "'shared_memory_byte_size' must be set along with"),
        ({"region": "r", "byte_size": "4"}, "expected int64_param"),
        ({"region": 4, "byte_size": 4}, "expected string_param"),
    ],
)
@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_place_in_a_region_has_its_name_and_size(given, match, side):
    message = REQUEST(model_name="m")
    tensor = getattr(message, side).add(name="x")
    if side == "inputs":
        tensor.datatype = "FP32"
        tensor.shape.append(1)
    for key, value in given.items():
        kind = "string_param" if isinstance(value, str) else "int64_param"
        setattr(tensor.parameters[f"shared_memory_{key}"], kind, value)
    with pytest.raises(OipError, match=match):
        request_of(message, [])
