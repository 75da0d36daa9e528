"""Two threads, and two streams, that train at once in an order that is always the same."""

import random
import threading

import numpy as np
import pytest
from benchmarks.two_streams import interleaved, two_streams

from tests.at_once import at_once
from tightship.resource.virtual import HostDevice, StealingVirtualResource

MIB = 1 << 20
LAYERS, ITERATIONS = 24, 4


def training(seed):
    """Slots and bytes: activations of a length that varies, kept until they are gone backwards."""
    choice, rows, next_slot = random.Random(seed), [], 0

    def allocate(size_bytes):
        nonlocal next_slot
        rows.append((next_slot, size_bytes))
        next_slot += 1
        return next_slot - 1

    def free(slot):
        rows.append((~slot, 0))

    for _ in range(ITERATIONS):
        length, kept = choice.randrange(200, 2000), []
        for _ in range(LAYERS):
            kept.extend([allocate(length * 4096), allocate(length * 1024 + 512)])
            free(allocate(length * choice.choice((2048, 12_288))))
        while kept:
            gradient = allocate(length * 4096)
            free(kept.pop())
            free(gradient)
    slots, sizes = zip(*rows, strict=True)
    return np.array(slots), np.array(sizes)


def make(**options):
    return StealingVirtualResource(HostDevice(), idle_s=1e9, **options)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_streams_hold_little_more_than_is_live_and_move_little(seed):
    figures = two_streams(make(), training(seed))
    assert figures["ratio"] <= 1.10
    assert figures["remap_share"] <= 0.02
    assert two_streams(make(), training(seed)) == figures


def test_streams_that_are_never_waited_for_hold_more():
    columns = training(1)
    hasty = two_streams(make(patience_s=0), columns)
    assert hasty["ratio"] > 1.10 > two_streams(make(), columns)["ratio"]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_alternating_threads_hold_little_more_than_is_live(seed):
    resource, sequence = make(), list(interleaved(training(seed)))
    turns, peaks = [threading.Semaphore(0) for _ in range(2)], [0, 0]
    live = {}

    def play(thread):
        for number, slot, size_bytes in sequence:
            if number != thread:
                turns[1 - thread].release()
                turns[thread].acquire()
            elif slot >= 0:
                live[thread, slot] = resource.allocate(size_bytes), size_bytes
                peaks[0] += size_bytes
                peaks[1] = max(peaks)
            else:
                address, freed_bytes = live.pop((thread, ~slot))
                resource.deallocate(address, freed_bytes)
                peaks[0] -= freed_bytes

    at_once(play, range(2))
    now = resource.virtual_statistics()
    assert now.peak_physical_bytes <= 1.10 * peaks[1]
    assert now.remap_count <= 0.02 * now.allocation_count
