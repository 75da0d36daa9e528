"""Weights as JSON values that say where a file has them."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.frontend.gguf.decoders import decoder
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored.fields import MalformedError
from tightship.frontend.gguf.parts import encoded_rows, integers_and_scales, plain
from tightship.frontend.gguf.shards import open_shards
from tightship.graph import Constant, Derived, DType, Fill, Inline, MappedFile, size_bytes
from tightship.graph.symbolic import SymbolicConstant, constant_key
from tightship.loading.kept.weights import INLINE_BYTES_MAX, weights_json, weights_of


def packed(constant: Constant) -> PackedWeight:
    return PackedWeight("w", constant, size_bytes(constant.dtype, constant.shape))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="Q4_0").written())
    return path


def test_weights_are_what_they_were(file: Path) -> None:
    contents = open_shards(file)
    norm, matrix = (contents.tensors[name] for name in ("output_norm.weight", "token_embd.weight"))
    constants: list[Constant] = [
        plain(norm),
        *integers_and_scales(matrix),
        Inline(np.arange(6, dtype=np.int64).reshape(2, 3)),
        Inline(np.array(2.5, np.float32)),
        Fill(np.array(1, np.float32), (1 << 20,)),
        SymbolicConstant(DType.INT64, np.array([3, 4], object)),
        Derived(DType.INT32, (2,), lambda: np.array([5, 6], np.int32)),
    ]
    files = [contents.files[0][0]]
    rows = json.loads(json.dumps(weights_json([packed(each) for each in constants], files)))
    found = weights_of(rows, files)
    for weight, constant in zip(found, constants, strict=True):
        assert weight == packed(weight.constant)
        assert (weight.constant.dtype, weight.constant.shape) == (constant.dtype, constant.shape)
        assert np.array_equal(weight.constant.array(), constant.array())
    assert isinstance(found[6].constant, SymbolicConstant)
    again = [each.constant for each in weights_of(rows, [MappedFile(file)])]
    assert list(map(constant_key, again[:6])) == list(map(constant_key, constants[:6]))


def test_rows_as_they_are_stored_stay_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="Q4_1").written())
    contents = open_shards(path)
    rows = encoded_rows(contents.tensors["token_embd.weight"])
    assert rows is not None
    said = weights_json([packed(rows)], [contents.files[0][0]])
    assert len(json.dumps(said)) < 100


def test_what_is_neither_small_nor_in_the_files_is_not_described(file: Path) -> None:
    contents = open_shards(file)
    norm = packed(plain(contents.tensors["output_norm.weight"]))
    assert weights_json([norm], []) is None
    large = Inline(np.zeros(INLINE_BYTES_MAX + 1, np.uint8))
    assert weights_json([packed(large)], []) is None
    many = [packed(Inline(np.zeros(INLINE_BYTES_MAX, np.uint8)))] * 20
    assert weights_json(many[:3], []) is not None
    assert weights_json(many, []) is None


@pytest.mark.parametrize(
    "row",
    [
        ["w", "bytes", "float32", [4], [0, 1 << 40, ""]],
        ["w", "bytes", "float32", [4], [1, 0, ""]],
        ["w", "bytes", "float33", [4], [0, 0, ""]],
        ["w", "gguf scales", "uint8", [4, 18], [0, 0, "Q4_1"]],
        ["w", "gguf scales", "uint8", [72], [0, 0, "Q4_0"]],
        ["w", "value", "int64", [2], "00"],
        ["w", "value", "int64", [2], "0g"],
        ["w", "other", "int64", [1], "00" * 8],
        ["w", "fill", "int64", [2], "00" * 16],
        ["w", "value"],
    ],
)
def test_rows_that_describe_nothing_are_refused(row: list[object], file: Path) -> None:
    with pytest.raises(MalformedError):
        weights_of([row], [MappedFile(file)])
