"""Plans and loads a model that another process reads, plans and packs, and hands over in memory.

The modules that do this, and the heap that they leave, would take some 20 MiB for as long as the
process runs. They are worth their memory where more models are planned, or other shapes come: so a
process that has imported onnx already plans for itself, as it does for a file that leaves lengths
open, for many weights, where the machine or a container has no room for two processes, and for
whatever another process could not plan alike. The plan of such a file is that of a process which
takes the model over, and states what one gains that plans it itself; a limit is checked against
what this process is about to gain.
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
from tightship.errors import CapacityError, FormatError, OutOfMemoryError, TightshipError
from tightship.loading.handing_over import WEIGHTS_BYTES_MAX, hand_over, plan_file
from tightship.loading.reading_process import ReadingProcess, is_reading_process
from tightship.model import Model
from tightship.quantity import format_bytes

if TYPE_CHECKING:
    from tightship.engine.plan.memory_plan import MemoryPlan
    from tightship.engine.plan.planned_apart import PlannedApart
    from tightship.loading.unprepared import Keep

ROOM_BYTES = 96 << 20
"""Memory that another process takes besides weights: Python, modules, and what planning holds."""
WEIGHTS_AT_ONCE = 3
"""Times that weights are in memory at most: read, folded, and packed."""
PIECE_BYTES = 4 << 20
"""Bytes of weights that are in memory twice while they are taken over."""


def plan_new(
    model: ModelSource, settings: Settings, tune: str | PathLike[str] | None
) -> "MemoryPlan":
    """Plan a model that is not prepared, as `plan` does, where `load` would have it planned.

    The plan is what `load` would gain in this process; in one that plans for others, such as that
    of budgets, it does not depend on what the process has imported.
    """
    path = _path_to_plan_apart(model, tune)
    if path is not None:
        with ReadingProcess() as process:
            found = _planned_by(process, path, settings)
        if found is not None:
            return found
    from tightship.engine.plan.planned_apart import planned_here
    from tightship.loading.unprepared import plan_anew

    planned = plan_anew(model, settings, tune)
    return planned if is_reading_process() else planned_here(planned)


def load_new(
    model: ModelSource,
    settings: Settings,
    bounds: Bounds,
    tune: str | PathLike[str] | None,
    progress: Progress | None,
    keep: "Keep | None",
) -> Model:
    """Load a model that is not prepared, as `load` does; for the arguments see `load_anew`."""
    path = None if keep is not None else _path_to_plan_apart(model, tune)
    if path is not None:
        loaded = _load_apart(path, settings, bounds, progress)
        if loaded is not None:
            return loaded
    from tightship.loading.unprepared import load_anew

    try:
        return load_anew(model, settings, bounds, tune, progress, keep)
    except CapacityError as error:
        if isinstance(model, str | PathLike) and keep is None and tune is None:
            raise _with_other_way(error, fspath(model)) from None
        raise


def _with_other_way(error: CapacityError, path: str) -> CapacityError:
    """Return an error that says how the model would take less, if another process can plan it."""
    if not is_fixed(path):
        return error
    if reads_models():
        why = "it has imported onnx"
    elif _room_bytes(path) > available_bytes():
        why = f"another one takes up to {format_bytes(_room_bytes(path))}, more than there is"
    else:
        return error
    return CapacityError(
        f"{error} This process plans the model itself, because {why}; `tightship plan` states what "
        "it needs otherwise.",
        needed_bytes=error.needed_bytes,
        limit_bytes=error.limit_bytes,
    )


def _path_to_plan_apart(model: ModelSource, tune: str | PathLike[str] | None) -> str | None:
    """Return the path of a model that another process is to plan; None for any other."""
    if tune is not None or not isinstance(model, str | PathLike) or reads_models():
        return None
    path = fspath(model)
    return path if _can_be_planned_apart(path) else None


def reads_models() -> bool:
    """Whether this process has the modules that read models, or is to have them."""
    return "onnx" in sys.modules or is_reading_process()


def _can_be_planned_apart(path: str) -> bool:
    """Whether another process can plan a file, and no further shapes will be planned here."""
    return is_fixed(path) and _room_bytes(path) <= available_bytes()


def _room_bytes(path: str) -> int:
    """Return the memory that another process may take to plan a file."""
    return ROOM_BYTES + WEIGHTS_AT_ONCE * os.path.getsize(path)


def is_fixed(path: str) -> bool:
    """Whether a file is ONNX with shapes for all inputs, and weights that are handed over."""
    from tightship.frontend import PROGRAM_SUFFIX
    from tightship.frontend.gguf_letters import begins_as_gguf
    from tightship.frontend.onnx.fixed_inputs import fixes_all_shapes

    if path.endswith(PROGRAM_SUFFIX) or begins_as_gguf(path):
        return False
    return os.path.getsize(path) <= WEIGHTS_BYTES_MAX and fixes_all_shapes(path)


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
        limits = bounds.limit_bytes, bounds.dynamic_bytes
        sent = _sent(settings)
        try:
            found = process.call(hand_over, path, memory, sent, limits, progress=progress)
        except ChildProcessError:
            return None
        process.end()  # before its memory is needed here
        if isinstance(found, Exception):
            raise found
        return None if found is None else _taken_over(memory, bounds, found)


def _planned_by(process: ReadingProcess, path: str, settings: Settings) -> "MemoryPlan | None":
    """Return the plan that another process makes; None if none can.

    Raises:
        TightshipError: The error of the model.
    """
    if not process.can_answer():
        return None
    try:
        return process.call(plan_file, path, _sent(settings))
    except OutOfMemoryError:
        return None
    except TightshipError:
        raise
    except Exception:  # noqa: BLE001  the process ended, or met what this one meets as well
        return None


def _sent(settings: Settings) -> Settings:
    """Return settings that can be pickled."""
    plain = {name: shape_or_length(shape) for name, shape in (settings.shapes or {}).items()}
    return replace(settings, shapes=plain or None, without=tuple(settings.without))


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


def _taken_over(memory: int, bounds: Bounds, said: "PlannedApart") -> Model | None:
    """Load what was written; None if it cannot be read here.

    Args:
        memory: Descriptor of the file in memory.
        bounds: Limits of the model.
        said: What its plan states of the other process.

    Raises:
        OutOfMemoryError: Memory for the weights cannot be allocated.
    """
    try:
        stored = StoredModel(f"/proc/self/fd/{memory}")
        prepared = stored.prepared(0)
    except (FormatError, OSError):
        return None
    plan = prepared.plan
    key = {name: fact for name, fact in plan.key.items() if name != "weights"}
    weights_bytes = aligned_offsets([copy.weight for copy in stored.copies])[1]
    placement = prepared.placement._replace(weights_bytes=weights_bytes)
    stated = replace(plan, key=key, weights_bytes=weights_bytes, apart=said)
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
