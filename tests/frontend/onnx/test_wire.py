import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import models
from tightship.errors import FormatError
from tightship.frontend.onnx import wire


@given(st.integers(0, (1 << 64) - 1))
def test_a_number_is_read_as_it_was_written(value: int) -> None:
    raw = wire.write_varint(value)
    assert wire.read_varint(memoryview(raw), 0, len(raw)) == (value, len(raw))


@given(st.integers(128, (1 << 64) - 1), st.data())
def test_a_number_that_is_cut_off_is_refused(value: int, data: st.DataObject) -> None:
    raw = wire.write_varint(value)
    stop = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(FormatError, match="runs past"):
        wire.read_varint(memoryview(raw), 0, stop)


def test_a_number_longer_than_64_bits_is_refused() -> None:
    with pytest.raises(FormatError, match="more than 10 bytes"):
        wire.read_varint(memoryview(b"\xff" * 11), 0, 11)


def test_fields_tile_the_message() -> None:
    raw = models.conv_net().SerializeToString()
    position = 0
    for field in wire.fields(memoryview(raw), 0, len(raw)):
        assert field.start == position
        assert field.start < field.begin <= field.stop
        position = field.stop
    assert position == len(raw)


def test_fields_are_those_that_protobuf_finds() -> None:
    model = models.conv_net()
    raw = model.SerializeToString()
    graphs = [f for f in wire.fields(memoryview(raw), 0, len(raw)) if f.number == 7]
    assert [onnx.GraphProto.FromString(raw[f.begin : f.stop]) for f in graphs] == [model.graph]


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x3a\x05abcd", "ends at byte 6"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\x7f", "ends at byte"),
        (b"\x0d\x00\x00\x00", "ends at byte 4"),
        (b"\x0b", "wire type 3"),
        (b"\x02\x00", "Field 0"),
    ],
    ids=["short", "absurd length", "short fixed32", "group", "number 0"],
)
def test_a_field_that_cannot_be_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        list(wire.fields(memoryview(raw), 0, len(raw)))
