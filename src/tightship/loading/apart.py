"""Loads a model that another process reads, plans and packs, and hands over in memory.

The modules that do this, and the heap that they leave, would take some 20 MiB for as long as the
process runs. They are worth their memory where more models are planned, or other shapes come: so a
process that has imported onnx already plans for itself, as it does for a file that leaves lengths
open, for many weights, where the machine or a container has no room for two processes, and for
whatever another process could not plan alike. Either way the plan is that of a process which plans
for itself: limits do not depend on what it has imported, and leave the other process, which has the
same limits, room to plan.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fcntl import F_DUPFD_CLOEXEC, fcntl
from os import PathLike, fspath
from typing import TYPE_CHECKING

from tightship._core import HostResource
from tightship.available import available_bytes
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import ModelSource, Settings
from tightship.engine.compile.input_shapes import shape_or_length
from tightship.engine.library import open_library, release_unused
from tightship.engine.stored.container import PAGE_BYTES
from tightship.engine.stored.model import StoredModel
from tightship.engine.weights.allocation import allocate
from tightship.engine.weights.weight_store import (
    PackedCopy,
    Progress,
    WeightStore,
    aligned_offsets,
)
from tightship.errors import FormatError
from tightship.loading.handing_over import WEIGHTS_BYTES_MAX, hand_over
from tightship.loading.reading_process import ReadingProcess
from tightship.model import Model

if TYPE_CHECKING:
    from tightship.loading.unprepared import Keep

ROOM_BYTES = 96 << 20
"""Memory that another process takes besides weights: Python, modules, and what planning holds."""
WEIGHTS_AT_ONCE = 3
"""Times that weights are in memory at most: read, folded, and packed."""
PIECE_BYTES = 4 << 20
"""Bytes of weights that are in memory twice while they are taken over."""


def load_new(
    model: ModelSource,
    settings: Settings,
    bounds: Bounds,
    tune: str | PathLike[str] | None,
    progress: Progress | None,
    keep: "Keep | None",
) -> Model:
    """Load a model that is not prepared, as `load` does; for the arguments see `load_anew`."""
    if tune is None and keep is None and isinstance(model, str | PathLike):
        path = fspath(model)
        if not reads_models() and _can_be_planned_apart(path):
            loaded = _load_apart(path, settings, bounds, progress)
            if loaded is not None:
                return loaded
    from tightship.loading.unprepared import load_anew

    return load_anew(model, settings, bounds, tune, progress, keep)


def reads_models() -> bool:
    """Whether this process has the modules that read models, so that another would save nothing."""
    return "onnx" in sys.modules


def _can_be_planned_apart(path: str) -> bool:
    """Whether another process can plan a file, and no further shapes will be planned here."""
    from tightship.frontend import PROGRAM_SUFFIX
    from tightship.frontend.gguf_letters import begins_as_gguf
    from tightship.frontend.onnx.fixed_inputs import fixes_all_shapes

    if path.endswith(PROGRAM_SUFFIX) or begins_as_gguf(path):
        return False
    size = os.path.getsize(path)
    return (
        size <= WEIGHTS_BYTES_MAX
        and ROOM_BYTES + WEIGHTS_AT_ONCE * size <= available_bytes()
        and fixes_all_shapes(path)
    )


def _load_apart(
    path: str, settings: Settings, bounds: Bounds, progress: Progress | None
) -> Model | None:
    """Load a model that another process hands over; None if none can, or it cannot be stored.

    Raises:
        TightshipError: The error of the model, or the plan exceeds a limit.
    """
    with _memory() as memory, ReadingProcess([] if memory is None else [memory]) as process:
        if memory is None:
            return None
        process.start()
        if "onednn" not in settings.without:
            open_library()  # while the other process starts
        if not process.can_answer():
            return None
        plain = {name: shape_or_length(shape) for name, shape in (settings.shapes or {}).items()}
        sent = replace(settings, shapes=plain or None, without=tuple(settings.without))
        limits = bounds.limit_bytes, bounds.dynamic_bytes
        try:
            found = process.call(hand_over, path, memory, sent, limits, progress=progress)
        except ChildProcessError:
            return None
        process.end()  # before its memory is needed here
        if isinstance(found, Exception):
            raise found
        return _taken_over(memory, bounds) if found else None


@contextmanager
def _memory() -> Iterator[int | None]:
    """Return a descriptor of memory that ends with the processes that have it open."""
    try:
        made = os.memfd_create("tightship load", os.MFD_CLOEXEC)
        try:
            # Below 3, where a daemon has closed what stands there, the other process has its own.
            memory = fcntl(made, F_DUPFD_CLOEXEC, 3)
        finally:
            os.close(made)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield memory
    finally:
        os.close(memory)


def _taken_over(memory: int, bounds: Bounds) -> Model | None:
    """Load what was written; None if it cannot be read here.

    Raises:
        OutOfMemoryError: Memory for the weights cannot be allocated.
    """
    try:
        stored = StoredModel(f"/proc/self/fd/{memory}")
        prepared = stored.prepared(0)
    except (FormatError, OSError):
        return None
    plan = prepared.plan
    key = {name: said for name, said in plan.key.items() if name != "weights"}
    weights_bytes = aligned_offsets([copy.weight for copy in stored.copies])[1]
    placement = prepared.placement._replace(weights_bytes=weights_bytes)
    stated = replace(plan, key=key, weights_bytes=weights_bytes)
    store = _weights(stored, memory)
    del stored
    prepared = prepared._replace(placement=placement, key=key, stated=stated)
    loaded = Model(prepared, bounds, store=store)
    release_unused()
    return loaded


def _weights(stored: StoredModel, memory: int) -> WeightStore:
    """Take the weights over, from the last to the first; their memory is given back meanwhile.

    In a block of its own the process has them in huge pages, from which kernels read faster.
    """
    stored.forget()
    release_unused()
    store, copies = WeightStore(HostResource()), stored.copies
    size = aligned_offsets([copy.weight for copy in copies])[1]
    block = allocate(store.resource, size, "the weights")
    room = block.array().data
    for start in range((size - 1) // PIECE_BYTES * PIECE_BYTES, -1, -PIECE_BYTES):
        _read(memory, PAGE_BYTES + start, room[start : min(start + PIECE_BYTES, size)])
        os.ftruncate(memory, PAGE_BYTES + start)
    store.adopt(PackedCopy(copy.weight, block, copy.offset_bytes) for copy in copies)
    return store


def _read(file: int, offset: int, room: memoryview) -> None:
    while len(room):
        count = os.preadv(file, [room], offset)
        offset, room = offset + count, room[count:]
