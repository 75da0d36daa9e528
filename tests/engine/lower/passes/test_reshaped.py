"""Constants of every kind under another shape."""

import numpy as np
import pytest

from tightship.engine.lower.passes.reshaped import reshaped
from tightship.graph import Derived, DType, Fill, Inline, Mapped, MappedFile
from tightship.graph.symbolic import constant_key

NUMBERS = np.arange(12, dtype=np.float32).reshape(3, 4)


def mapped(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(NUMBERS.tobytes())
    return Mapped(MappedFile(path), 0, DType.FLOAT32, (3, 4))


def derived(_):
    return Derived(DType.FLOAT32, (3, 4), lambda: NUMBERS, (), "numbers")


MAKERS = {"mapped": mapped, "derived": derived, "inline": lambda _: Inline(NUMBERS),
          "fill": lambda _: Fill(np.float32(3), (3, 4))}  # fmt: skip


@pytest.mark.parametrize("kind", MAKERS)
def test_elements_keep_their_order(kind, tmp_path):
    constant = MAKERS[kind](tmp_path)
    found = reshaped(constant, (2, 6))
    np.testing.assert_array_equal(found.array(), constant.array().reshape(2, 6))
    assert constant_key(found) == constant_key(reshaped(constant, (2, 6)))
