"""Blocks of rows are joined when they are read, and only then."""

import numpy as np
import pytest

from tightship.model.row_blocks import RowBlocks


@pytest.fixture
def parts() -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.standard_normal((count, 3)).astype(np.float32) for count in (1, 2, 1)]


def test_blocks_have_the_shape_of_all(parts: list[np.ndarray]) -> None:
    blocks = RowBlocks(parts, lambda: None)
    assert (blocks.shape, blocks.ndim, blocks.dtype) == ((4, 3), 2, np.float32)


def test_blocks_are_copied_one_by_one_and_are_read_then(parts: list[np.ndarray]) -> None:
    read: list[int] = []
    target = np.zeros((4, 5), np.float32)
    RowBlocks(parts, lambda: read.append(1)).copy_to(target[:, 1:4])
    assert np.array_equal(target[:, 1:4], np.concatenate(parts))
    assert not target[:, [0, 4]].any()
    assert read == [1]


def test_blocks_are_one_array_once_one_is_asked_for(
    parts: list[np.ndarray],
) -> None:
    read: list[int] = []
    blocks, wanted = RowBlocks(parts, lambda: read.append(1)), np.concatenate(parts)
    found = np.asarray(blocks)
    for each in parts:
        each[...] = 0  # the caller's memory may change once it was read
    again, target = np.asarray(blocks), np.empty((4, 3), np.float32)
    blocks.copy_to(target)
    assert again is found
    assert read == [1]
    for each in (found, target, np.asarray(blocks, np.float64)):
        assert np.array_equal(each, wanted)
