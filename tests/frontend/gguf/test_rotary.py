"""Rotations, and what is refused of them."""

from typing import Any

import numpy as np
import pytest

from tests.frontend.gguf.test_metadata import metadata
from tightship.errors import FormatError, GraphError
from tightship.frontend.gguf.rotary import Rotary, read_rotary


def read(**fields: Any) -> Rotary:
    given = {f"rope.{key.replace('__', '.')}": each for key, each in fields.items()}
    return read_rotary(metadata(**given), 16, are_neighbours=True)


def test_rotations_are_read_and_default() -> None:
    assert read() == Rotary(16, 10_000.0, 1.0, are_neighbours=True)
    assert read(scaling__factor=4.0).factor == 1.0
    found = read(dimension_count=8, freq_base=16.0, scaling__type="linear", scaling__factor=4.0)
    np.testing.assert_allclose(found.frequencies, [1 / 4, 1 / 8, 1 / 16, 1 / 32])


def test_rotations_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FormatError, match="is 7; it must be an even number up to 16"):
        read(dimension_count=7)
    with pytest.raises(FormatError, match="is 18; it must be an integer of 1 to 16"):
        read(dimension_count=18)
    with pytest.raises(GraphError, match="rule `yarn`, which is not supported; supported are none"):
        read(scaling__type="yarn")
