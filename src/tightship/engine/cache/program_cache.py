"""Cache of a model's programs by input shapes; evicts those that runs stopped using."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from tightship._core import HostResource
from tightship.engine.arenas.arena_pool import POLL_S
from tightship.engine.arenas.model_pools import ModelPools
from tightship.engine.arenas.pools import pool_of
from tightship.engine.cache.bounds import Bounds
from tightship.engine.cache.program_eviction import Program, ProgramEviction
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.input_shapes import Key, key_of
from tightship.engine.compile.shape_specializer import ShapeSpecializer
from tightship.engine.library import release_heap, release_unused
from tightship.engine.plan.footprint import code_bytes, program_bytes, steps_bytes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.primitive_cache import pool_budget_bytes, release_idle_primitives
from tightship.engine.run.arena import Arena, Reserved
from tightship.engine.run.executable import build
from tightship.engine.run.limits import Limits
from tightship.engine.weights.weight_store import PackedCopy, Progress, WeightStore, aligned_offsets
from tightship.errors import InputError, warn_caller
from tightship.graph.layout import UnboundLengthError

if TYPE_CHECKING:
    from tightship.engine.cache.statistics import MemoryStatistics, ProgramStatistics

GROWTH_BYTES = 1 << 20
"""Growth of the largest arena above which making a program gives back the code that it touched.

Below it, code pages stay until a program runs again: if each run has another shape, as in a text
that grows, the next program needs them too.
"""


class Reservation:
    """Context manager that holds a program and an arena for one run."""

    __slots__ = ("_cache", "_key", "_limits", "_program", "_room")

    def __init__(self, cache: "ProgramCache", key: Key, limits: Limits) -> None:
        self._cache, self._key, self._limits = cache, key, limits

    def __enter__(self) -> tuple[Program, Arena]:
        self._program, self._room = self._cache.acquire(self._key, self._limits)
        return self._program, self._room.arena(self._program.executable)

    def __exit__(self, *_: object) -> None:
        self._cache.release(self._program, self._room)


class ProgramCache:
    """Cache of at most `bounds.programs` programs with one copy of the weights and one pool.

    Concurrent runs of equal shapes wait for one program; a program stays while a run has it.

    Attributes:
        dynamic: Memory of steps outside the plan.
        first_executable: The only program, where no others can be made; it stays until `close`.
    """

    def __init__(
        self,
        first: CompiledModel,
        bounds: Bounds,
        variants: ShapeSpecializer | None = None,
        progress: Progress | None = None,
        packed: Sequence[PackedCopy] = (),
        store: WeightStore | None = None,
    ) -> None:
        """Build the first program.

        Its weights are held until the cache is closed; if `packed` is given, all of those are.
        `store` may have some of its own weights already.
        """
        self.first_plan = first.plan
        self._bounds = bounds
        self._variants = variants
        self._store = WeightStore(HostResource()) if store is None else store
        self.resource = self._store.resource
        self._store.adopt(packed)
        self._is_mapped = bool(packed)
        kept = max(bounds.retention.kept_bytes, first.placement.arena_bytes)
        retention = bounds.retention._replace(kept_bytes=kept)
        self._pool = pool_of(bounds.arenas, retention, bounds.arena_pool)
        budget = pool_budget_bytes() if bounds.pool_bytes is None else bounds.pool_bytes
        self.dynamic = ModelPools(budget, bounds.dynamic_bytes, retention.idle_s)
        self._eviction = ProgramEviction()
        self._hits = self._misses = self._evictions = 0
        self._closed = self._has_unused = False
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._making = threading.Lock()
        release_unused()
        executable = build(first.placement, self._store, progress)
        release_unused()
        steps, code = steps_bytes(first.placement.lowered), code_bytes(first.placement.lowered)
        self._weights_bytes = first.placement.weights_bytes
        self._fixed_bytes = self._weights_bytes + first.runtime_bytes - steps
        self._fixed_bytes -= sum(code.values())
        self._base = WeightStore(self.resource)
        self._base.adopt(packed or executable.weights)
        self._packed = self._base.by_name()
        self.first_lowered = executable.placement.lowered
        self.first_key = key_of(self.first_lowered)
        self._eviction.put(self.first_key, Program(executable, steps, code))
        self._eviction.take(self.first_key)
        self.first_executable = executable if variants is None else None
        self._resize_pool(0, 0)
        self._pool.warm(executable)

    @property
    def packed_weights(self) -> tuple[PackedCopy, ...]:
        """Packed weights of the first program."""
        return tuple(self._base.copies_held())

    @property
    def statistics(self) -> "ProgramStatistics":
        """Counts since loading."""
        from tightship.engine.cache.statistics import ProgramStatistics  # few ask for them

        with self._lock:
            held, own = list(self._eviction), self._eviction.own_bytes
            largest = max((program.run_bytes for program in held), default=0)
            counts = self._hits, self._misses, self._evictions
            return ProgramStatistics(len(held), *counts, own, largest)

    @property
    def memory(self) -> "MemoryStatistics":
        """Bytes of weights, arenas and programs."""
        from tightship.engine.cache.statistics import MemoryStatistics

        pool, dynamic = self._pool, self.dynamic.statistics
        with self._lock:
            return MemoryStatistics(
                self.resource.current_bytes, pool.held_bytes, pool.used_bytes, pool.peak_bytes,
                len(list(self._eviction)), self._eviction.own_bytes,
                dynamic.reserved_bytes + dynamic.free_bytes, dynamic.peak_bytes,
            )  # fmt: skip

    def release_unused(self) -> int:
        """Release programs and arenas that no run uses, except the first program.

        Returns:
            Bytes of weights, arenas and pools given back.
        """
        with self._making, self._lock:
            before = self._held_bytes
            for key in self._eviction.idle():
                if key != self.first_key:
                    self._release(key)
            self._pool.release_unused()
            return before - self._held_bytes + self.dynamic.release_unused()

    @property
    def _held_bytes(self) -> int:
        return self.resource.current_bytes + self._pool.held_bytes

    def reserved(self, key: Key, limits: Limits) -> "Reservation":
        """Return a context manager of the program for `key`, made if needed, and of an arena.

        Entering it raises:

        Raises:
            CapacityError: The program would exceed the limit even if all others were released.
            DeadlineError, StoppedError: The limits ended the wait for memory.
            InputError: The cache is closed, or the shapes do not fit the model.
            OutOfMemoryError: The system refuses memory.
        """
        return Reservation(self, key, limits)

    def acquire(self, key: Key, limits: Limits) -> tuple[Program, Reserved]:
        """Pin a program and reserve an arena for it."""
        program = self._pinned(key, limits)
        room: Reserved | None = None
        try:
            room = self._pool.reserve(program.executable, limits, self._beside_bytes(program))
        finally:
            if room is None:
                self._unpin(program)
        return program, room

    def release(self, program: Program, room: Reserved) -> None:
        """Give back a program and arena of `acquire`."""
        self._pool.release(room, self._beside_bytes(program))
        self._unpin(program)

    def _beside_bytes(self, program: Program) -> int:
        """Count bytes that a run of the program takes in addition to its arena."""
        return program.executable.io_bytes + (self._bounds.dynamic_bytes or 0)

    def _unpin(self, program: Program) -> None:
        with self._lock:
            program.pins -= 1
            self._changed.notify_all()

    def holds(self, key: Key) -> bool:
        """Whether there is a program for these input shapes, or one being made."""
        return key in self._eviction

    def has_own_weights(self, program: Program) -> bool:
        """Whether a program has weights that the first program lacks; they are released with it."""
        return not set(self._base.copies_held()).issuperset(program.executable.weights)

    def plan_for(self, key: Key) -> MemoryPlan:
        """Plan the model's memory for these input shapes; weights packed already are shared.

        Raises:
            GraphError, InputError: The shapes do not fit the model.
        """
        if self._variants is None or key == self.first_key:
            return self.first_plan
        return self._shared_plan(self._variants.prepare(dict(key), self._packed))

    def _shared_plan(self, prepared: CompiledModel) -> MemoryPlan:
        """State a plan in addition to the weights that are packed already."""
        placement, weights_bytes = prepared.placement, self._weights_bytes
        extra = aligned_offsets(self._base.missing(placement.lowered.weights))[1]
        fixed = self._fixed_bytes - weights_bytes
        return replace(
            prepared.plan,
            weights_bytes=weights_bytes + extra,
            runtime_bytes=fixed + program_bytes(placement.lowered),
        )

    def _pinned(self, key: Key, limits: Limits) -> Program:
        with self._lock:
            while True:
                if self._closed:
                    raise InputError("The model was closed; load it again to run it.")
                if key not in self._eviction:
                    self._eviction.book(key)
                    self._misses += 1
                    break
                program = self._eviction.take(key)
                if program is not None:
                    self._hits += 1
                    program.pins += 1
                    if self._has_unused:
                        self._has_unused = False
                        release_unused()
                    return program
                limits.check()
                self._changed.wait(POLL_S)
        return self._made(key, limits)

    def _made(self, key: Key, limits: Limits) -> Program:
        """Make a program, pinned; release the key if that fails."""
        program: Program | None = None
        try:
            while not self._making.acquire(timeout=POLL_S):
                limits.check()
            try:
                program = self._make(key, limits)
                self._release_made()
                complaint = self._unshared(key)
            finally:
                self._making.release()
        finally:
            with self._lock:
                if program is None:
                    self._eviction.cancel(key)
                    self._resize_pool(0, 0)
                self._changed.notify_all()
        if complaint is not None:
            with ExitStack() as unless_raised:
                unless_raised.callback(self._unpin, program)
                warn_caller(complaint)
                unless_raised.pop_all()
        return program

    def _unshared(self, key: Key) -> str | None:
        """Word a warning about weights that are shared for other shapes only, if there are any."""
        assert self._variants is not None
        base = set(self._base.copies_held())
        own = [copy.weight for copy in self._store.copies_held() if copy not in base]
        return self._variants.unshared(key, own) if own else None

    def _make(self, key: Key, limits: Limits) -> Program:
        assert self._variants is not None
        self._release_surplus(key)
        prepared = self._variants.prepare(dict(key), self._packed)
        if self._bounds.limit_bytes is not None:
            self._variants.check(self._shared_plan(prepared), dict(key))
        placement = prepared.placement
        own = self._make_way(key, prepared, limits)
        if self._bounds.limit_bytes is not None:
            release_idle_primitives()
        try:
            executable = build(placement, self._store)
        except UnboundLengthError:  # a constant depends on the template's length
            prepared = self._variants.prepare_anew(dict(key), self._packed)
            executable = build(prepared.placement, self._store)
        with self._lock:
            largest = self._eviction.arena_bytes
            self._has_unused = executable.arena_bytes <= largest + GROWTH_BYTES
            program = Program(executable, own, code_bytes(prepared.placement.lowered), pins=1)
            self._eviction.put(key, program)
            self._resize_pool(0, 0)
            if self._closed:
                program.pins = 0
                raise InputError("The model was closed; load it again to run it.")
        return program

    def _release_surplus(self, key: Key) -> None:
        """Let the program go that one for `key` replaces, before anything is prepared for that.

        What the new one takes then goes where the old one was. Where processes share the weights,
        the old one's primitives go too.
        """
        with self._lock:
            goes = self._eviction.surplus(key)
            if goes is not None:
                self._release(goes)
        if goes is not None and self._is_mapped:
            release_idle_primitives()

    def _release_made(self) -> None:
        """Give back memory that making a program needed, now that its descriptions are gone.

        If processes share the weights, unused primitives are released too, to keep each process
        small.
        """
        if self._is_mapped:
            release_idle_primitives()
        if self._has_unused:
            release_heap()
        else:
            release_unused()

    def _make_way(self, key: Key, prepared: CompiledModel, limits: Limits) -> int:
        """Release programs until another fits; return the bytes of its steps and weights."""
        placement = prepared.placement
        run = placement.arena_bytes + placement.io_bytes
        steps, code = steps_bytes(placement.lowered), code_bytes(placement.lowered)
        with self._lock:
            while True:
                missing = self._store.missing(placement.lowered.weights)
                own = steps + aligned_offsets(missing)[1]
                added = self._eviction.added_bytes(own, code)
                has_room = self._has_room(added, run)
                goes = (
                    self._eviction.surplus(key)
                    if has_room
                    else next(iter(self._eviction.idle()), None)
                )
                if goes is not None:
                    self._release(goes)
                    continue
                if has_room:
                    self._resize_pool(added, placement.arena_bytes)
                    if self._pool.fits:
                        return own
                limits.check()
                self._changed.wait(POLL_S)

    def _has_room(self, own_bytes: int, run_bytes: int) -> bool:
        held, bounds = list(self._eviction), self._bounds
        if len(held) >= bounds.programs:
            return False
        own = self._eviction.own_bytes + own_bytes
        if held and own > bounds.program_bytes:
            return False
        largest = max((program.run_bytes for program in held), default=0)
        needed = self._fixed_bytes + own + max(largest, run_bytes) + (bounds.dynamic_bytes or 0)
        return bounds.limit_bytes is None or needed <= bounds.limit_bytes

    def _release(self, key: Key) -> None:
        self._pool.forget(self._eviction.release(key).executable)
        self._evictions += 1
        used = [copy for program in self._eviction for copy in program.executable.weights]
        self._store.keep((*self._base.copies_held(), *used))
        self._resize_pool(0, 0)

    def _resize_pool(self, own_bytes: int, arena_bytes: int) -> None:
        """Give the pool the bytes that programs leave, counting a coming one of the given sizes."""
        limit, own = self._bounds.limit_bytes, self._eviction.own_bytes + own_bytes
        budget = None if limit is None else limit - self._fixed_bytes - own
        self._pool.resize(max(self._eviction.arena_bytes, arena_bytes), budget)

    def close(self) -> None:
        """Wait for active runs, then give all memory back."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        self._pool.close()
        with self._lock:
            while not self._eviction.is_still:
                self._changed.wait()
            self._eviction.clear()
        self.dynamic.close()
        for store in (self._base, self._store):
            store.keep(())
