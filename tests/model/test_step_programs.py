"""Pieces of prompts, and programs for them."""

import numpy as np
import pytest

import tightship
from tests import decoders
from tightship.model.step_programs import pieces


@pytest.mark.parametrize(
    ("count", "chunk", "wanted"),
    [(1, 16, [1]), (37, 16, [16, 16, 4, 1]), (15, 16, [8, 4, 2, 1]), (3, 1, [1, 1, 1])],
)
def test_a_prompt_is_cut_into_powers_of_two(count: int, chunk: int, wanted: list[int]) -> None:
    assert list(pieces(count, chunk)) == wanted


def test_caches_are_written_in_place_and_weights_are_shared() -> None:
    sizes = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
    with tightship.load(decoders.llama(), shapes=sizes) as model:
        session = model.session(64, chunk=8)
        session.step(list(range(15)))
        programs = session._programs
        for steps in (1, 2, 4, 8):
            places = programs._places_of(steps)
            assert not places.copied
            assert len(set(places.caches.values())) == 4
            assert len(places.caches) == 8
        assert programs.count == 4
        held = {id(copy) for copy in programs.packed}
        assert len(held) == len(programs.packed)
        assert {id(copy) for copy in model.packed_weights} <= held


def test_logits_that_a_caller_keeps_are_not_written_over() -> None:
    size = decoders.Size(layers=1, vocabulary=1 << 16)  # large enough to be kept
    sizes = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
    with tightship.load(decoders.llama(size), shapes=sizes) as model:
        session, other = model.session(64, chunk=8), model.session(64, chunk=8)
        first = session.step([1, 2, 3])
        before = first.copy()
        kept = other.step([4])
        assert not np.shares_memory(first, kept)
        np.testing.assert_array_equal(first, before)
        part = session.step([5])[0, 0, 7:9]
        wanted = part.copy()
        session.step([6])
        np.testing.assert_array_equal(part, wanted)
