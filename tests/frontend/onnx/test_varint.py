import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.errors import FormatError
from tightship.frontend.onnx.varint import decode_varints
from tightship.frontend.onnx.wire import write_varint

numbers = st.lists(st.integers(0, (1 << 64) - 1) | st.integers(0, 300))


@given(numbers)
def test_numbers_are_decoded_as_they_were_written(values: list[int]) -> None:
    raw = np.frombuffer(b"".join(map(write_varint, values)), np.uint8)
    assert decode_varints(raw, "w").tolist() == values


@given(numbers, st.integers(128, (1 << 64) - 1))
def test_a_last_number_that_is_cut_off_is_refused(values: list[int], last: int) -> None:
    raw = b"".join(map(write_varint, [*values, last]))[:-1]
    with pytest.raises(FormatError, match="`w` ends within a number"):
        decode_varints(np.frombuffer(raw, np.uint8), "w")


def test_a_number_of_eleven_bytes_is_refused() -> None:
    with pytest.raises(FormatError, match="11 bytes"):
        decode_varints(np.frombuffer(b"\x80" * 10 + b"\x01", np.uint8), "w")
