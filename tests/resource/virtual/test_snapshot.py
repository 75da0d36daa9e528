import json
import random
from pathlib import Path

import pytest

from tests.resource.virtual.gate import Gate
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    HostDevice,
    StealingVirtualResource,
    memory_events,
    virtual_snapshot,
    write_snapshot,
)
from tightship.trace.torch_snapshot import read_snapshot

PAGE_BYTES = 16 << 10
GRAIN = 4096  # of pages, and where a segment may begin
POLICIES = {
    "stealing": lambda: StealingVirtualResource(HostDevice(), page_bytes=PAGE_BYTES, patience_s=0),
    "seed": lambda: ChunkedVirtualResource(HostDevice(), PAGE_BYTES),
}


@pytest.fixture(params=POLICIES)
def resource(request):
    return POLICIES[request.param]()


def churn(resource, count, seed=1, stream=None):
    """Blocks that come and go; the sizes of those that are left, by address."""
    draw = random.Random(seed)
    live = {}
    for _ in range(count):
        if live and draw.random() < 0.45:
            address = draw.choice(sorted(live))
            resource.deallocate_on(address, live.pop(address), stream)
        else:
            size_bytes = draw.randint(1, 5 * PAGE_BYTES)
            live[resource.allocate_on(size_bytes, stream)] = size_bytes
    return live


def test_blocks_tile_their_segments_and_the_live_ones_are_all_there(resource):
    live = churn(resource, 300)
    segments = virtual_snapshot(resource)["segments"]
    for segment in segments:
        stop = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == stop
            stop += block["size"]
        assert stop == segment["address"] + segment["total_size"]
        assert segment["total_size"] % PAGE_BYTES == 0
    blocks = [block for segment in segments for block in segment["blocks"]]
    active = [block for block in blocks if block["state"] == "active_allocated"]
    assert {block["address"]: block["requested_size"] for block in active} == live
    now = resource.virtual_statistics()
    assert sum(segment["allocated_size"] for segment in segments) == now.allocated_bytes
    assert sum(segment["requested_size"] for segment in segments) == sum(live.values())
    assert sum(segment["total_size"] for segment in segments) <= now.physical_bytes


def test_events_lead_to_what_is_mapped_and_live(resource):
    resource.record_events(100_000)
    live = churn(resource, 300)
    mapped_bytes, found = 0, {}
    for action, address, size_bytes, _ in resource.events():
        if action == "allocated":
            found[address] = size_bytes
        elif action == "freed":
            assert found.pop(address) == size_bytes
        else:
            mapped_bytes += size_bytes if action == "mapped" else -size_bytes
    assert found == live
    segments = virtual_snapshot(resource)["segments"]
    assert mapped_bytes == sum(segment["total_size"] for segment in segments)


def test_only_the_last_events_are_kept_and_none_at_first(resource):
    resource.deallocate(resource.allocate(100), 100)
    assert resource.events() == []
    resource.record_events(3)
    for size_bytes in (100, 200):
        resource.deallocate(resource.allocate(size_bytes), size_bytes)
    kept = [(action, size_bytes) for action, _, size_bytes, _ in resource.events()]
    assert kept == [("freed", 100), ("allocated", 200), ("freed", 200)]
    times = [time_ns for *_, time_ns in resource.events()]
    assert times == sorted(times)
    resource.record_events(0)
    assert resource.events() == []


def test_a_block_that_work_may_use_awaits_it(resource):
    gate = Gate()
    stream = gate.stream()
    resource.deallocate_on(resource.allocate_on(PAGE_BYTES, stream), PAGE_BYTES, stream)
    (segment,) = virtual_snapshot(resource)["segments"]
    block = segment["blocks"][0]
    assert (block["state"], block["requested_size"]) == ("active_pending_free", PAGE_BYTES)
    assert (segment["allocated_size"], segment["active_size"]) == (0, PAGE_BYTES)
    gate.is_open = True


def stepped_back(snapshot):
    """Pages that have memory, and blocks in use by address, before each event, the last one first;
    as the viewer finds them."""
    segments = snapshot["segments"]
    pages = {
        page
        for segment in segments
        for page in range(segment["address"], segment["address"] + segment["total_size"], GRAIN)
    }
    blocks = {
        block["address"]: block["requested_size"]
        for segment in segments
        for block in segment["blocks"]
        if block["state"] in ("active_allocated", "active_pending_free")
    }
    for event in reversed(snapshot["device_traces"][0]):
        address, size_bytes = event["addr"], event["size"]
        if event["action"] == "alloc":
            del blocks[address]
        elif event["action"] == "free_completed":
            blocks[address] = size_bytes
        elif event["action"].startswith("segment"):
            changed = set(range(address, address + size_bytes, GRAIN))
            was_mapped = event["action"] == "segment_map"
            assert changed <= pages if was_mapped else not changed & pages
            pages ^= changed
        yield pages, blocks


@pytest.mark.parametrize("count", [30, 100_000])
def test_at_every_event_what_is_in_use_has_memory(resource, count):
    gate = Gate()
    stream = gate.stream()
    resource.record_events(count)
    churn(resource, 200)
    churn(resource, 60, seed=2, stream=stream)
    snapshot = virtual_snapshot(resource)
    states = {block["state"] for segment in snapshot["segments"] for block in segment["blocks"]}
    assert "active_pending_free" in states
    for pages, blocks in stepped_back(snapshot):
        assert all(start // GRAIN * GRAIN in pages for start in blocks)
    gate.is_open = True


def test_no_stream_is_the_one_that_the_viewer_leaves_out(resource):
    resource.record_events(100)
    churn(resource, 50)
    snapshot = virtual_snapshot(resource)
    rows = snapshot["segments"] + snapshot["device_traces"][0]
    assert {row["stream"] for row in rows} == {1}


def test_what_is_written_is_read_back_as_a_trace(resource, tmp_path: Path):
    resource.record_events(100_000)
    live = churn(resource, 200)
    path = tmp_path / "snapshot.pickle"
    write_snapshot(resource, path)
    found = {}
    for event in read_snapshot(path).events:
        if event.is_allocation:
            found[event.number] = event.size_bytes
        else:
            del found[event.number]
    assert found == live


def test_trace_events_count_what_is_live_and_mapped(resource):
    resource.record_events(100_000)
    live = churn(resource, 200)
    events = json.loads(json.dumps(memory_events(resource)))["traceEvents"]
    last = [event["args"] for event in events if event["ph"] == "C"][-1]
    segments = virtual_snapshot(resource)["segments"]
    assert last == {
        "live bytes": sum(live.values()),
        "mapped bytes": sum(segment["total_size"] for segment in segments),
    }
    phases = [event["ph"] for event in events]
    assert phases.count("b") - phases.count("e") == len(live)
