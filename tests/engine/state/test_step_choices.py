"""Choices of the programs of sessions."""

import pytest

from tests import decoders
from tests.engine.state.loops import decoder
from tightship.engine.state.decoder import Declared
from tightship.engine.state.step_choices import StepChoices

CHOICES = StepChoices(64, 1, 8)


def test_sizes_are_powers_of_two_with_the_largest_first() -> None:
    assert CHOICES.sizes == (8, 4, 2, 1)
    assert CHOICES._replace(chunk=1).sizes == (1,)


@pytest.mark.parametrize("grows", [True, False])
def test_a_decoder_is_made_for_the_choices(grows: bool) -> None:
    whole = decoder(decoders.llama(), 64)
    outputs = {cache.pair.present: (1, 2, None, 8) for cache in whole.caches}
    declared = Declared(whole.declared, {"logits": (1, None, 50), **outputs}, whole.types)
    found = CHOICES._replace(batch=2, grows=grows).decoder(whole.read, declared)
    assert (found.context, found.batch) == (64, 2)
    assert {cache.grows for cache in found.caches} == {grows}
