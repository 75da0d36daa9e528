"""Tensors of a `.safetensors` file, where they lie."""

import json
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.driver.client.safetensors import StoredTensor, read_tensors
from tightship.errors import FormatError


def opened(data):
    file = os.memfd_create("tensors")
    os.write(file, data)
    return file


def encoded(tensors):
    """As the format's own library writes them: the header padded to eight bytes."""
    header, body = {"__metadata__": {"format": "np"}}, b""
    for name, array in tensors.items():
        stop = len(body) + array.nbytes
        offsets = [len(body), stop]
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": offsets}
        body += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=9).filter(lambda name: name != "__metadata__"),
    st.lists(st.integers(0, 3), max_size=3).map(lambda shape: np.ones(shape, np.float32)),
    max_size=4,
)


@given(ARRAYS)
def test_each_tensor_is_found_where_it_is(arrays):
    file = opened(encoded(arrays))
    found = read_tensors(file)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        there = found[name]
        assert (there.dtype, there.shape, there.size_bytes) == ("F32", array.shape, array.nbytes)
        assert os.pread(file, there.size_bytes, there.offset_bytes) == array.tobytes()
    os.close(file)


GOOD = encoded({"w": np.ones(3, np.float32)})
BAD = {
    "nothing": b"",
    "a length only": GOOD[:8],
    "a header that is cut": GOOD[:20],
    "values that are cut": GOOD[:-1],
    "a length beyond any": b"\xff" * 8 + GOOD[8:],
    "no JSON": GOOD[:8] + b"x" + GOOD[9:],
    "a row": struct.pack("<Q", 2) + b"[]",
    "a tensor that is a number": struct.pack("<Q", 7) + b'{"a":1}',
    "a tensor before the values": GOOD.replace(b"[0, 12]", b"[-9,12]"),
    "a tensor that ends before it begins": GOOD.replace(b"[0, 12]", b"[9, 1 ]"),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_what_is_no_such_file_is_refused(data):
    file = opened(data)
    with pytest.raises(FormatError):
        read_tensors(file)
    os.close(file)


def test_a_tensor_without_elements_lies_anywhere_within():
    file = opened(encoded({"none": np.ones((0, 4), np.float32)}))
    (found,) = read_tensors(file).values()
    assert found == StoredTensor("F32", (0, 4), found.offset_bytes, 0)
    os.close(file)
