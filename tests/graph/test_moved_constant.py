"""Constants that are made of other tensors in the same way."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tightship.graph import Derived, DType, Fill, Mapped, MappedFile
from tightship.graph.constant import Array, Constant
from tightship.graph.moved_constant import ConstantMover, NotMovedError


def turned(source: Constant) -> Array:
    return source.array().T


def test_a_constant_is_made_of_the_tensor_in_the_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(12, dtype=np.float32).tofile(path)
    stored = Mapped(MappedFile(path), 0, DType.FLOAT32, (2, 3))
    mover = ConstantMover(lambda mapped: replace(mapped, offset_bytes=24))
    derived = Derived(DType.FLOAT32, (3, 2), partial(turned, stored), (stored,), "turned")
    moved = mover.moved(derived)
    assert moved.array().tolist() == [[6, 9], [7, 10], [8, 11]]
    assert moved is mover.moved(derived)
    assert isinstance(moved, Derived)
    assert moved.sources[0] is mover.moved(stored)
    assert derived.array().tolist() == [[0, 3], [1, 4], [2, 5]]
    ones = Fill(np.ones((), np.float32), (4,))
    assert mover.moved(ones) is ones


def test_a_function_that_keeps_a_constant_to_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    np.arange(12, dtype=np.float32).tofile(path)
    stored = Mapped(MappedFile(path), 0, DType.FLOAT32, (2, 3))
    mover = ConstantMover(lambda mapped: replace(mapped, offset_bytes=24))
    derived = Derived(DType.FLOAT32, (3, 2), lambda: turned(stored), (stored,), "turned")
    with pytest.raises(NotMovedError, match="may read more"):
        mover.moved(derived)
