"""Inputs of a decoder that have an encoder's rows."""

import pytest

from tightship.engine.state.encoder import encoder_dimensions, encoder_shapes, is_of_encoder
from tightship.errors import InputError

DECLARED = {
    "decoder_input_ids": ("batch", "decoder_length"),
    "encoder_mask": ("batch", "rows"),
    "past.0.encoder.key": ("batch", 4, "rows", 8),
    "past.0.decoder.key": ("batch", 4, "past", 8),
}


def test_they_are_told_by_their_names_or_dimensions() -> None:
    found = [name for name, shape in DECLARED.items() if is_of_encoder(name, shape)]
    assert found == ["encoder_mask", "past.0.encoder.key"]
    assert is_of_encoder("past.1", ("batch", 4, "encoder_length", 8))


def test_lengths_are_the_batch_or_given() -> None:
    assert encoder_dimensions(DECLARED) == {"rows"}
    wanted = {"encoder_mask": (2, 9), "past.0.encoder.key": (2, 4, 9, 8)}
    assert encoder_shapes(DECLARED, 2, {"rows": 9}) == wanted
    assert encoder_shapes(DECLARED, 2, {}, 9) == wanted


def test_a_length_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match=r"`encoder_mask`.*`--shape rows=1500`"):
        encoder_shapes(DECLARED, 1, {})
