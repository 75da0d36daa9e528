"""Headers of files, whole and broken."""

import struct
from typing import Any

import gguf
import numpy as np
import pytest

from tests.frontend.gguf.written import Tensor, written
from tightship.errors import FormatError
from tightship.frontend.gguf.fields import Text
from tightship.frontend.gguf.header import Header, read_header
from tightship.graph import MappedFile

FLOATS = {"a": Tensor.floats(np.arange(5)), "b": Tensor.floats(np.arange(6).reshape(2, 3))}


def read(data: bytes) -> Header:
    return read_header(MappedFile.of_bytes(data, "m"))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("alignment", [8, 32, 128])
def test_tensors_lie_where_the_header_says(version: int, alignment: int) -> None:
    fields = {"general.alignment": ("u32", alignment), "x": "text"}
    data = written(fields, FLOATS, version=version, alignment=alignment)
    header = read(data)
    assert isinstance(header.fields["x"], Text)
    for name, tensor in header.tensors.items():
        assert data[tensor.offset_bytes : tensor.end_bytes] == FLOATS[name].raw
        assert tensor.offset_bytes % alignment == 0
    assert header.end_bytes == len(data)


def test_files_of_the_gguf_package_are_read(tmp_path: Any) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_token_list(["a", "b"])
    writer.add_tensor("t", np.arange(4, dtype=np.float32))
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file,
                  writer.write_tensors_to_file, writer.close):  # fmt: skip
        write()
    header = read_header(MappedFile(path))
    assert header.fields["llama.block_count"] == 2
    tensor = header.tensors["t"]
    raw = path.read_bytes()[tensor.offset_bytes : tensor.end_bytes]
    np.testing.assert_array_equal(np.frombuffer(raw, np.float32), np.arange(4))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not begin with the letters GGUF"),
        (b"GGUX" + bytes(20), "does not begin with the letters GGUF"),
        (b"GGUF" + struct.pack("<I", 1), "its version is 1; it must be 2 or 3"),
        (b"GGUF" + struct.pack(">I", 3), "its numbers are big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 40), "number of keys is .* at most 4096"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0), "number of tensors is .* at most 65536"),
        (b"GGUF" + struct.pack("<IQQ", 3, 5, 0), "number of tensors is 5, for which 0 bytes"),
        (written({"general.alignment": 24}, {}), "is 24; it must be a power of two from 8"),
        (written({"general.alignment": "x"}, {}), "is not a number; it must be a power of two"),
        (written({}, FLOATS, offsets=[0, 0]), "overlaps"),
    ],
)
def test_broken_headers_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(data)


def test_a_key_stands_once() -> None:
    once = written({"x": 1}, {})
    twice = once[:8] + struct.pack("<QQ", 0, 2) + once[24:41] + once[24:41]
    with pytest.raises(FormatError, match="two keys are `x`"):
        read(twice)


def test_every_cut_of_a_header_is_refused_and_none_of_the_data() -> None:
    data = written({"x": ["a", "b"], "y": 3}, FLOATS)
    first = min(tensor.offset_bytes for tensor in read(data).tensors.values())
    for size in range(first - 40):
        with pytest.raises(FormatError):
            read(data[:size])
    assert read(data[:first]).tensors == read(data).tensors
