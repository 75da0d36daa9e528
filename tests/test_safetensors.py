"""Tensors of a `.safetensors` file, where they lie."""

import json
import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.errors import FormatError
from tightship.safetensors import (
    DTYPES,
    StoredTensor,
    read_contents,
    read_into,
    read_tensors,
    write_tensors,
)


def opened(data):
    file = os.memfd_create("tensors")
    os.write(file, data)
    return file


def encoded(tensors):
    """Encode tensors as the format's own library does: the header padded to eight bytes."""
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
    "a tensor of another size than its shape": GOOD.replace(b"[3]", b"[4]"),
    "a tensor shorter than nothing": GOOD.replace(b'"F32"', b'"F8"').replace(b"[3]", b"[-3]"),
    "a tensor of infinite length": struct.pack("<Q", 60)
    + b'{"w":{"dtype":"F32","shape":[1e999],"data_offsets":[0,4]}}  '
    + bytes(4),
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


TYPED = st.dictionaries(
    st.text(min_size=1, max_size=9).filter(lambda name: name != "__metadata__"),
    st.tuples(
        st.lists(st.integers(0, 3), max_size=3),
        st.sampled_from(sorted(set(DTYPES) - {"bfloat16"})),
    ).map(lambda pair: np.arange(np.prod(pair[0], dtype=int)).astype(pair[1]).reshape(pair[0])),
    max_size=4,
)


@given(TYPED, st.dictionaries(st.text(), st.text(), max_size=2))
def test_what_is_written_is_read_again_and_aligned(arrays, metadata):
    with open(os.memfd_create("tensors"), "w+b") as file:
        write_tensors(file, arrays, metadata)
        file.flush()
        found = read_contents(file.fileno())
        assert found.metadata == metadata
        assert found.tensors.keys() == arrays.keys()
        end = max((t.offset_bytes + t.size_bytes for t in found.tensors.values()), default=0)
        assert not end or end == os.fstat(file.fileno()).st_size
        for name, array in arrays.items():
            assert found.tensors[name].offset_bytes % array.itemsize == 0
            again = np.empty_like(array)
            read_into(file.fileno(), found.tensors[name], again)
            assert (again == array).all()
            assert (found.tensors[name].shape, again.dtype) == (array.shape, array.dtype)


def test_a_file_that_becomes_shorter_is_said_to_end():
    file = opened(GOOD)
    (tensor,) = read_tensors(file).values()
    os.ftruncate(file, len(GOOD) - 2)
    with pytest.raises(FormatError, match=f"ends at byte {len(GOOD) - 2}"):
        read_into(file, tensor, np.empty(3, np.float32))
    os.close(file)
