"""Arrays of sessions are bound once; a step sets its numbers."""

from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest

import tightship
from tests import decoders
from tightship.engine.run.output_buffer_pool import LARGE_BYTES, OutputBufferPool
from tightship.model import feeds
from tightship.model.step_arrays import BoundCaches

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}


@pytest.fixture(scope="module")
def session() -> Iterator[tightship.Session]:
    size = decoders.Size(layers=1, vocabulary=LARGE_BYTES // 4)
    with tightship.load(decoders.llama(size), shapes=SIZES) as model:
        yield model.session(64, chunk=8)


def test_a_step_binds_nothing_that_the_last_one_has_bound(session: tightship.Session) -> None:
    session.step([1])
    with mock.patch.object(feeds, "bind_besides", side_effect=AssertionError):
        session.step([2])
    context = session._programs._arenas.pool._free[0].arena(
        session._programs._places_of(1).executable
    )
    with (
        mock.patch.object(context, "context", wraps=context.context) as native,
        mock.patch.object(session._programs, "token_steps", None),
    ):
        session.step([3])
    assert [call.args[0] for call in native.bind_external.call_args_list] == [
        session._programs._places_of(1).logits
    ]
    assert native.run.call_count == 1


def test_numbers_of_a_step_are_set_in_place(session: tightship.Session) -> None:
    places = session._programs._places_of(2)
    caches = BoundCaches(session._rows.arrays)
    step = caches.step(2, places)
    slots = [places.inputs[name].slot for name in ("input_ids", "past_length")]
    tokens, past = (step.fixed.arrays[slot] for slot in slots)
    step.set(np.array([[7, 9]]), 5)
    np.testing.assert_array_equal(tokens, [[7, 9]])
    np.testing.assert_array_equal(past, [5])
    assert caches.step(2, places) is step


def test_large_results_come_from_the_pool(session: tightship.Session) -> None:
    places, kept = session._programs._places_of(1), OutputBufferPool()
    address = places.new_results(kept)[places.logits].__array_interface__["data"][0]
    assert places.new_results(kept)[places.logits].__array_interface__["data"][0] == address
