"""TensorFlow Lite models of a few tensors."""

import struct

from tests.planner.format.flatbuffers import Scalar, flatbuffer

METADATA = "OfflineMemoryAllocation"


def tensor(name, *shape, kind=0, buffer=0, variable=0, signature=()):
    fields = {0: list(shape), 1: Scalar("b", kind), 2: Scalar("I", buffer), 3: name}
    if variable:
        fields[5] = Scalar("B", variable)
    if signature:
        fields[7] = list(signature)
    return fields


def operator(inputs, outputs):
    return {0: Scalar("I", 0), 1: list(inputs), 2: list(outputs)}


def chain(changes=None):
    """x -> a -> b -> y with a weight read by the first operator, and a variable by the last."""
    tensors = [
        tensor("x", 1, 8),
        tensor("w", 8, 8, buffer=1),
        tensor("a", 1, 16),
        tensor("b", 1, 5, kind=9),
        tensor("state", 4, variable=1),
        tensor("y", 2, kind=4),
    ]
    subgraph = {
        0: tensors,
        1: [0],
        2: [5],
        3: [operator([0, 1, -1], [2]), operator([2], [3]), operator([3, 4], [5])],
        4: "main",
    }
    root = {
        0: Scalar("I", 3),
        1: [{0: Scalar("b", 9)}],
        2: [subgraph],
        3: "a chain",
        4: [{}, {0: bytes(range(64)) * 4}],
    }
    return flatbuffer(b"TFL3", {**root, **(changes or {})})


def planned(offsets, count=6, version=0, subgraph=0):
    """The chain with metadata beside other metadata."""
    payload = struct.pack(f"<3i{len(offsets)}i", version, subgraph, count, *offsets)
    buffers = [{}, {0: bytes(range(64)) * 4}, {0: b"1.14.0"}, {0: payload}]
    entries = [{0: "min_runtime_version", 1: Scalar("I", 2)}, {0: METADATA, 1: Scalar("I", 3)}]
    return chain({4: buffers, 6: entries})
