"""Run in a process of its own: what runs of a model take from the heap, as JSON.

LD_PRELOAD=heap_counter.so python -m tests.heap.measure MODEL.onnx FEEDS.npz RUNS
"""

import ctypes
import gc
import json
import sys

import numpy as np

import tightship


def main(model: str, feeds: str, runs: int) -> None:
    """Load, warm up, count one run, then compare the heap before and after many."""
    counter = ctypes.CDLL(None)
    counter.heap_live_bytes.restype = ctypes.c_long
    text = ctypes.create_string_buffer(1 << 16)
    with np.load(feeds) as arrays:
        inputs = dict(arrays)
    with tightship.load(model) as loaded:
        outputs = loaded.run(inputs)
        for _ in range(20):
            loaded.run(inputs, outputs=outputs)
        counter.heap_count_begin()
        loaded.run(inputs, outputs=outputs)
        counter.heap_count_end(text, ctypes.c_size_t(len(text)))
        gc.collect()
        blocks, before = sys.getallocatedblocks(), counter.heap_live_bytes()
        for _ in range(runs):
            loaded.run(inputs, outputs=outputs)
        gc.collect()
        growth = counter.heap_live_bytes() - before
        objects = sys.getallocatedblocks() - blocks
    lines = text.value.decode().splitlines()
    owners = {}
    for line in lines:
        if not line.startswith("|"):
            name, count, size, large = line.rsplit(maxsplit=3)
            owners[name] = {"count": int(count), "bytes": int(size), "large": int(large)}
    frames = [line for line in lines if line.startswith("|")]
    sys.stdout.write(json.dumps({"owners": owners, "frames": frames, "growth_bytes": growth,
                      "growth_objects": objects}))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
