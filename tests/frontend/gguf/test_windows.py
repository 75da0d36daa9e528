"""Windows of layers."""

from typing import Any

import pytest

from tests.frontend.gguf.test_metadata import metadata
from tightship.errors import FormatError
from tightship.frontend.gguf.rotary import Rotary
from tightship.frontend.gguf.windows import BASE, PATTERN, WINDOW, Windows, read_windows

ROTARY = Rotary(16, 1e6, 8.0, are_neighbours=False)


def read(layers: int = 7, *, is_gemma: bool = True, **fields: Any) -> Windows:
    return read_windows(metadata(**fields), layers, ROTARY, is_gemma=is_gemma)


def test_every_sixth_layer_of_gemma_sees_all_keys() -> None:
    found = read(**{WINDOW: 512})
    assert [found.of(layer) for layer in range(7)] == [512] * 5 + [0, 512]
    assert found.rotary == Rotary(16, 10_000.0, 1.0, are_neighbours=False)


def test_files_may_tell_the_layers_and_the_base() -> None:
    found = read(4, **{WINDOW: 8, PATTERN: 2, BASE: 500.0})
    assert found.layers == (True, False, True, False)
    assert found.rotary.base == 500.0
    listed = read(3, **{WINDOW: 8, PATTERN: [True, False, False]})
    assert listed.layers == (True, False, False)
    with pytest.raises(FormatError, match="'3 truth values'; it must be one for each of 4 layers"):
        read(4, **{WINDOW: 8, PATTERN: [True, False, False]})


def test_other_decoders_have_a_window_in_all_layers_or_none() -> None:
    assert read(2, is_gemma=False, **{WINDOW: 8}) == Windows(8, (True, True), ROTARY)
    for fields in ({}, {WINDOW: 0}):
        assert read(2, is_gemma=False, **fields) == Windows(0, (False, False), ROTARY)
