"""Writes a virtual resource's state as PyTorch's memory snapshot and as trace events.

The snapshot is a pickle of dictionaries, lists, numbers and strings with the fields that
`torch.cuda.memory._dump_snapshot` writes, so that PyTorch's viewer and script read it. A freed
block is completely free in its events at once; in the segments it awaits the work that may use it.
"""

import os
import pickle
from itertools import groupby
from pathlib import Path

from tightship._core import VirtualResource
from tightship.public_calls import public_call

Row = dict[str, object]
BlockRow = tuple[int, int, int, int, str]
EventRow = tuple[str, int, int, int]

STATES = {
    "live": "active_allocated",
    "awaiting": "active_pending_free",
    "kept": "inactive",
    "free": "inactive",
}
ACTIONS = {
    "allocated": ("alloc",),
    "freed": ("free_requested", "free_completed"),
    "mapped": ("segment_map",),
    "unmapped": ("segment_unmap",),
}
NO_POOL = (0, 0)
STREAM = 1
"""Stream of all segments and events, because the stream of a use is not recorded. With stream 0 the
viewer drops the streams of events but not of segments, and loses segments that it should join."""
PROTOCOL = 4


@public_call
def virtual_snapshot(resource: VirtualResource) -> dict[str, object]:
    """Return segments and their blocks, and the recorded events, in PyTorch's terms.

    Memory that is not mapped is in no segment; memory that the policy `chunked` has mapped twice is
    in two. A block that awaits work is inactive if its events do not tell its size.
    """
    events = resource.events()
    frames: list[Row] = [{"filename": type(resource).__name__, "line": 0, "name": "allocate"}]
    given_back = _given_back(events) if events else None
    by_segment = groupby(resource.blocks(), key=lambda block: block[0])
    return {
        "segments": [
            _segment(start, [_block(block, given_back, frames) for block in blocks])
            for start, blocks in by_segment
        ],
        "device_traces": [_trace(events, frames)],
        "allocator_settings": {"expandable_segments": True},
        "external_annotations": [],
    }


@public_call
def write_snapshot(resource: VirtualResource, path: str | os.PathLike[str]) -> None:
    """Write `virtual_snapshot` as a pickle.

    Args:
        resource: Resource whose state is written.
        path: Path of the file, which is overwritten.

    Raises:
        OSError: The file cannot be written.
    """
    Path(path).write_bytes(pickle.dumps(virtual_snapshot(resource), protocol=PROTOCOL))


@public_call
def memory_events(resource: VirtualResource) -> dict[str, object]:
    """Return the recorded events for Perfetto and chrome://tracing, in microseconds.

    There is a slice for each block, and a counter of live and of mapped bytes since recording
    began. Blocks that are never freed are slices without an end.
    """
    events: list[Row] = [_event("process_name", "M", 0, args={"name": "virtual resource"})]
    live: dict[int, int] = {}
    live_bytes = mapped_bytes = 0
    for action, address, size_bytes, time_ns in resource.events():
        if action == "allocated":
            live[address] = size_bytes
            live_bytes += size_bytes
            events.append(_slice("b", address, size_bytes, time_ns))
        elif action == "freed" and address in live:
            live_bytes -= live.pop(address)
            events.append(_slice("e", address, size_bytes, time_ns))
        elif action in ("mapped", "unmapped"):
            mapped_bytes += size_bytes if action == "mapped" else -size_bytes
        amounts: Row = {"live bytes": live_bytes, "mapped bytes": mapped_bytes}
        events.append(_event("memory", "C", time_ns, args=amounts))
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _given_back(events: list[EventRow]) -> dict[int, int]:
    """Return the bytes of blocks freed last, by address."""
    found: dict[int, int] = {}
    for action, address, size_bytes, _ in events:
        if action == "freed":
            found[address] = size_bytes
        elif action == "allocated":
            found.pop(address, None)
    return found


def _block(block: BlockRow, given_back: dict[int, int] | None, frames: list[Row]) -> Row:
    _, address, size_bytes, requested_bytes, state = block
    if state == "awaiting":  # the viewer cannot rewind a block that has no event
        known_bytes = size_bytes if given_back is None else given_back.get(address, 0)
        requested_bytes = min(known_bytes, size_bytes)
        state = state if requested_bytes else "free"
    return {
        "address": address,
        "size": size_bytes,
        "requested_size": requested_bytes,
        "state": STATES[state],
        "frames": frames,
    }


def _segment(start: int, blocks: list[Row]) -> Row:
    return {
        "device": 0,
        "address": start,
        "total_size": _bytes_of(blocks, "size", *STATES.values()),
        "stream": STREAM,
        "segment_type": "large",
        "segment_pool_id": NO_POOL,
        "allocated_size": _bytes_of(blocks, "size", STATES["live"]),
        "active_size": _bytes_of(blocks, "size", STATES["live"], STATES["awaiting"]),
        "requested_size": _bytes_of(blocks, "requested_size", STATES["live"]),
        "is_expandable": True,
        "frames": blocks[0]["frames"],
        "blocks": blocks,
    }


def _bytes_of(blocks: list[Row], field: str, *states: str) -> int:
    return sum(int(str(block[field])) for block in blocks if block["state"] in states)


def _trace(events: list[EventRow], frames: list[Row]) -> list[Row]:
    return [
        {
            "action": name,
            "addr": address,
            "size": size_bytes,
            "stream": STREAM,
            "frames": frames,
            "pool_id": NO_POOL,
            "time_us": time_ns // 1000,
        }
        for action, address, size_bytes, time_ns in events
        for name in ACTIONS[action]
    ]


def _slice(phase: str, address: int, size_bytes: int, time_ns: int) -> Row:
    row = _event(f"{size_bytes:,} bytes", phase, time_ns, args={"size_bytes": size_bytes})
    return {**row, "cat": "block", "id": hex(address)}


def _event(name: str, phase: str, time_ns: int, args: Row) -> Row:
    return {"name": name, "ph": phase, "pid": 1, "tid": 0, "ts": time_ns / 1000, "args": args}
