"""Room for requests: what is booked for them, and which bodies fit."""

from dataclasses import fields, replace

import pytest

from tightship import CapacityError, InputError
from tightship.cluster.replica_memory import Requirements
from tightship.cluster.request_memory import (
    ANSWERS_MAX,
    HEADER_BYTES,
    NUMBER_BYTES,
    SERVE_BYTES,
    TEXT_COPIES,
    together,
    with_requests,
)

MIB = 1 << 20
WORKER = 60 * MIB


def needs(model="m", arena=5 * MIB, weights=9 * MIB, io=MIB):
    known = {"model": model, "arena_bytes": arena, "weights_bytes": weights, "io_bytes": io}
    others = {each.name: 0 for each in fields(Requirements)} | {"runtime_bytes": 3 * MIB}
    return Requirements(**{**others, **known})


def test_models_of_one_replica_share_the_largest_arena():
    both = together([needs("a", arena=5 * MIB, io=2 * MIB), needs("b", arena=7 * MIB)])
    assert (both.model, both.arena_bytes, both.io_bytes) == ("a, b", 7 * MIB, 2 * MIB)
    assert (both.weights_bytes, both.runtime_bytes) == (18 * MIB, 6 * MIB)


def test_each_request_at_once_adds_its_copies():
    one, limits = with_requests(needs(), 1, WORKER, None)
    three, same = with_requests(needs(), 3, WORKER, None)
    assert limits.raw_bytes == same.raw_bytes == MIB + HEADER_BYTES
    assert one.request_bytes >= SERVE_BYTES + 3 * limits.raw_bytes
    assert three.request_bytes - one.request_bytes >= 6 * limits.raw_bytes


def test_numbers_in_json_count_by_their_number():
    small = with_requests(needs(), 2, WORKER, None)[0]
    numbers = replace(needs(), input_elements=MIB)
    found, limits = with_requests(numbers, 2, WORKER, None)
    assert limits.numbers == MIB
    assert found.request_bytes - small.request_bytes >= 2 * (NUMBER_BYTES - 2) * MIB
    answers = with_requests(replace(needs(), output_elements=1000), 2, WORKER, None)[0]
    assert 100_000 < answers.request_bytes - small.request_bytes < 400_000
    most = with_requests(replace(needs(), output_elements=64 * MIB), 2, WORKER, None)[0]
    assert most.request_bytes - small.request_bytes == ANSWERS_MAX


def test_more_memory_is_room_for_text():
    booked, limits = with_requests(needs(), 1, WORKER, None)
    assert limits.json_bytes == HEADER_BYTES
    given = WORKER + booked.replica_bytes + 60 * MIB
    more, wider = with_requests(needs(), 1, WORKER, given)
    assert more.replica_bytes + WORKER == given
    assert wider.json_bytes == limits.json_bytes + 60 * MIB // TEXT_COPIES


def test_memory_that_holds_no_request_is_refused_with_the_least():
    with pytest.raises(CapacityError, match=r"more than `max_memory`, 70\.0 MiB") as caught:
        with_requests(needs(), 2, WORKER, 70 * MIB)
    least = caught.value.needed_bytes
    found, limits = with_requests(needs(), 2, WORKER, least)
    assert found.replica_bytes + WORKER == least
    assert limits.json_bytes == HEADER_BYTES


def test_no_request_at_once_is_refused():
    with pytest.raises(InputError, match="`max_ongoing_requests` is 0"):
        with_requests(needs(), 0, WORKER, None)
