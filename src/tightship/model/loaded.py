"""Defines `Model`, which `load` returns and which runs the model."""

import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakSet

from numpy.typing import ArrayLike

from tightship._core import StopFlag
from tightship.engine.cache.bounds import Bounds
from tightship.engine.cache.program_cache import ProgramCache
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.input_shapes import Key
from tightship.engine.compile.shape_specializer import ShapeSpecializer
from tightship.engine.library import check_workers, release_unused
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.primitive_cache import release_idle_primitives
from tightship.engine.program.program import Space
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits, deadline_of
from tightship.engine.run.output_buffer_pool import OutputBufferPool
from tightship.engine.weights.weight_store import PackedCopy, Progress, WeightStore
from tightship.errors import InputError
from tightship.graph import DType, Shape
from tightship.model import feeds
from tightship.model.feeds import Array
from tightship.model.session_opener import SessionOpener
from tightship.public_calls import explains_memory, public_methods

if TYPE_CHECKING:
    from tightship.engine.cache.statistics import MemoryStatistics, ProgramStatistics
    from tightship.engine.run.profile import Profile
    from tightship.model.bound_run import BoundRun

LOADED: "WeakSet[Model]" = WeakSet()
"""Models of the process, possibly including closed ones."""


@public_methods
class Model(SessionOpener):
    """A model with its weights packed, ready to run in exactly the memory of its plan.

    Several threads may run one model at the same time: each run reserves an arena of its own, and
    waits for one if the limit allows no more. If the file leaves lengths of inputs symbolic, inputs
    of any such shape are accepted; a program for new shapes is prepared at their first run.

    Attributes:
        plan: Every byte that the model takes with the shapes it was loaded for, with offsets.
    """

    def __init__(
        self,
        prepared: CompiledModel,
        bounds: Bounds,
        variants: ShapeSpecializer | None = None,
        progress: Progress | None = None,
        packed: Sequence[PackedCopy] = (),
        store: WeightStore | None = None,
    ) -> None:
        """Take the arguments of `ProgramCache`.

        `variants` prepares the model for other input shapes; None if all shapes are fixed.
        """
        self._variants = variants
        self._has_open_shapes = variants is not None
        self._limit_bytes = bounds.limit_bytes
        self._programs: ProgramCache | None = ProgramCache(
            prepared, bounds, variants, progress, packed, store
        )
        self._lowered = self._programs.first_lowered
        self._workers = self._lowered.workers
        self.plan: MemoryPlan = self._programs.first_plan
        self._key = self._programs.first_key
        self._kept = OutputBufferPool() if variants is None else None
        self._closing = threading.Lock()
        LOADED.add(self)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in order."""
        return tuple(self._lowered.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs, in order."""
        return tuple(self._lowered.outputs)

    @property
    def input_types(self) -> dict[str, tuple[DType, tuple[int, ...] | None]]:
        """Element type and shape of every input; the shape is None if any shape is accepted."""
        return {
            name: (operand.dtype, None if operand.space is Space.OBJECT else operand.shape)
            for name, operand in self._lowered.inputs.items()
        }

    @property
    def output_types(self) -> dict[str, tuple[DType, tuple[int, ...] | None]]:
        """Element type and shape of every output; the shape is None if it depends on data."""
        return {
            name: (operand.dtype, None if operand.space is Space.OBJECT else operand.shape)
            for name, operand in self._lowered.outputs.items()
        }

    @property
    def takes_other_shapes(self) -> bool:
        """Whether the file leaves lengths of inputs symbolic."""
        return self._has_open_shapes

    @property
    def open_lengths(self) -> dict[str, tuple[bool, ...]]:
        """Flags for every input of known rank: whether each of its lengths may change."""
        known = {} if self._variants is None else self._variants.open_lengths()
        found = {}
        for name, shape in self._key:
            lengths = known.get(name, (False,) * len(shape))
            found[name] = (True,) * len(shape) if lengths is None else lengths
        return found

    @cached_property
    def known_output_shapes(self) -> dict[str, Shape | None]:
        """Shape of every output for any inputs; None for any rank, a non-integer for any length.

        The first access may read the file again, and raises `InputError` if it has changed.
        """
        known = None if self._variants is None else self._variants.output_shapes()
        return {
            name: shape if known is None else known.get(name, shape and (None,) * len(shape))
            for name, (_, shape) in self.output_types.items()
        }

    @explains_memory("a program for other shapes")
    def output_shapes(
        self, shapes: Mapping[str, tuple[int, ...]]
    ) -> dict[str, tuple[int, ...] | None]:
        """Return shapes of the outputs for shapes of all inputs; None for those that data decide.

        The call prepares a program for these shapes.

        Raises:
            InputError: The shapes do not fit the model, or the model is closed.
            CapacityError, GraphError, OutOfMemoryError: As `run`.
        """
        if missing := [name for name, _ in self._key if name not in shapes]:
            raise InputError(f"Input `{missing[0]}` has no shape; give one for every input.")
        key = tuple((name, tuple(shapes[name])) for name, _ in self._key)
        if key != self._key and (self._variants is None or not self._variants.admit(key)):
            said = ", ".join(f"`{name}` {list(shape)}" for name, shape in key)
            raise InputError(f"`{self.plan.model}` does not accept these input shapes: {said}.")
        with self._open().reserved(key, Limits()) as (program, _):
            return {
                name: None if operand.space is Space.OBJECT else operand.shape
                for name, operand in program.lowered.outputs.items()
            }

    @property
    def programs(self) -> "ProgramStatistics":
        """Statistics of programs: how many are held, how many runs found theirs, and their bytes.

        Raises:
            InputError: The model is closed.
        """
        return self._open().statistics

    def memory_stats(self) -> "MemoryStatistics":
        """Return the bytes that weights, arenas and programs take now.

        Raises:
            InputError: The model is closed.
        """
        return self._open().memory

    @property
    def packed_weights(self) -> tuple[PackedCopy, ...]:
        """Packed weights for the shapes of loading; a reference to them keeps their memory alive.

        Raises:
            InputError: The model is closed.
        """
        return self._open().packed_weights

    def release_unused_memory(self) -> int:
        """Release memory that no run is using: arenas, and programs for further shapes.

        Programs for the shapes of loading stay, and arrays of outputs that the caller still has. A
        later run allocates again what it needs.

        Returns:
            Bytes of weights, arenas and pools that were released.

        Raises:
            InputError: The model is closed.
        """
        released = self._open().release_unused()
        self._release_rows()
        if self._kept is not None:
            self._kept.release()
        release_idle_primitives()
        release_unused()
        return released

    def plan_for(self, shapes: Mapping[str, Sequence[int]]) -> MemoryPlan:
        """Plan every byte that the model takes with these input shapes, without loading anything.

        Args:
            shapes: A shape for each input; inputs left out keep the shape of loading.

        Raises:
            InputError: The shapes do not fit the model, or it is closed.
            GraphError: The model cannot be run with them.
        """
        programs = self._open()
        unknown = [name for name in shapes if name not in self._lowered.inputs]
        if unknown:
            raise InputError(
                f"Unknown input `{unknown[0]}`; the model's inputs are "
                f"{', '.join(self.input_names)}."
            )
        key = tuple((name, tuple(shapes.get(name, shape))) for name, shape in self._key)
        if self._variants is None and key != self._key:
            raise InputError(f"All shapes of `{self.plan.model}` are fixed; see `Model.plan`.")
        return programs.plan_for(key)

    def __call__(self, *arrays: ArrayLike, **named: ArrayLike) -> Array | tuple[Array, ...]:
        """Run on arrays given in order or by name.

        Returns:
            The output, or a tuple of several outputs in the model's order.

        Raises:
            InputError: As `run`; also more arrays than inputs, or one given twice.
        """
        if len(arrays) > len(self.input_names):
            raise InputError(
                f"{len(arrays)} arrays were given; the model has {len(self.input_names)} inputs: "
                f"{', '.join(self.input_names)}."
            )
        given = dict(zip(self.input_names, arrays, strict=False))
        twice = given.keys() & named.keys()
        if twice:
            raise InputError(f"Input `{min(twice)}` was given both in order and by name.")
        results = tuple(self.run({**given, **named}).values())
        return results[0] if len(results) == 1 else results

    @explains_memory("a run of a model")
    def run(
        self,
        inputs: Mapping[str, ArrayLike],
        *,
        outputs: Mapping[str, Array] | None = None,
        timeout_s: float | None = None,
        stop: StopFlag | None = None,
        workers: int | None = None,
    ) -> dict[str, Array]:
        """Run the model once.

        Args:
            inputs: An array for every input name, of its dtype and shape; any strides and byte
                order. C-contiguous arrays in native byte order are read in place, others copied.
            outputs: Arrays to write some or all outputs into: C-contiguous, of the output's dtype
                and shape, not overlapping each other; new arrays by default. An output may be an
                input's array if no step reads the input later, as for a cache that is appended to.
            timeout_s: Seconds after which the run ends, while it waits for an arena or between two
                steps; no limit by default.
            stop: Flag that ends the run at the same points when another thread sets it.
            workers: Number of independent steps that may run at once in the same arena, each on
                one thread; by default as many as the model was loaded for, and always one for a
                model of several threads. A model that was not loaded for workers waits where its
                plan reuses bytes. The results are bit-identical.

        Returns:
            An array for every output name: the caller's if one was given, otherwise a new array,
            which later runs do not overwrite.

        Raises:
            InputError: A name, dtype or shape does not fit, the model is closed, or `workers` is
                more than 1 for a model loaded with several threads.
            CapacityError: The limit of loading does not hold a program for these shapes.
            GraphError: The model cannot be run with these shapes.
            DeadlineError: The timeout passed.
            StoppedError: `stop` was set.
            OutOfMemoryError: Steps outside the plan would take more than `dynamic_memory`, or the
                system refuses.
        """
        programs = self._open()
        workers = self._workers if workers is None else workers
        check_workers(workers, self._lowered.threads)
        deadline = deadline_of(timeout_s)
        stop = StopFlag() if stop is None else stop
        limits = Limits(stop, deadline, programs.dynamic, workers)
        key = self._key_of(programs, inputs)
        given, in_order = outputs or {}, workers == 1
        if (grown := self._run_growing(key, inputs, given, limits)) is not None:
            return grown
        # Arrays are bound inside, because the reservation counts them besides the arena.
        with programs.reserved(key, limits) as (program, arena):
            fed = feeds.bind(program.lowered, inputs, given, self._kept, in_order=in_order)
            execute(program.executable, arena, fed.external, fed.objects, limits)
        return {
            name: fed.objects[name] if operand.space is Space.OBJECT else fed.external[operand.slot]
            for name, operand in program.lowered.outputs.items()
        }

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> "BoundRun":
        """Bind arrays for repeated runs, which read and write them in place.

        Args:
            inputs: As for `run`; C-contiguous and in native byte order.
            outputs: As for `run`; one for every output.

        Raises:
            InputError: A name, dtype or shape does not fit, or the shape of an output depends on
                data.
        """
        from tightship.model.bound_run import BoundRun

        programs = self._open()
        if missing := [name for name in self.output_names if name not in outputs]:
            raise InputError(f"Output `{missing[0]}` has no array; a bound run needs all of them.")
        key = self._key_of(programs, inputs)
        arrays = dict(inputs), dict(outputs)
        return BoundRun(programs, key, arrays, self._workers)

    @explains_memory("a run of a model")
    def profile(self, inputs: Mapping[str, ArrayLike], *, repeat: int = 10) -> "Profile":
        """Run the model once untimed, then `repeat` times with every step timed.

        Args:
            inputs: As for `run`.
            repeat: Number of timed runs, at least 1; a step's time is their median.

        Raises:
            InputError: As `run`; also fewer than one run.
            OutOfMemoryError: As `run`.
        """
        from tightship.engine.run.profile import profile_of, timed_run

        if repeat < 1:
            raise InputError(f"`repeat` is {repeat}; it must be at least 1.")
        programs, laps = self._open(), []
        key = self._key_of(programs, inputs)
        for _ in range(1 + repeat):
            limits = Limits(dynamic=programs.dynamic)
            with programs.reserved(key, limits) as (program, arena):
                fed = feeds.bind(program.lowered, inputs, {}, self._kept)
                executable = program.executable
                laps.append(timed_run(executable, arena, fed.external, fed.objects, limits))
        return profile_of(executable, programs.plan_for(key), laps[1:])

    def _key_of(self, programs: ProgramCache, inputs: Mapping[str, ArrayLike]) -> Key:
        """Return the shapes to run with: those of the inputs, if the model leaves them symbolic."""
        variants = self._variants
        if variants is None:
            return self._key
        key = feeds.shapes_of(self._lowered, inputs)
        # With the shapes of loading, binding raises the error that names the input.
        known = key == self._key or programs.holds(key)
        return key if known or variants.admit(key) else self._key

    def _open(self) -> ProgramCache:
        programs = self._programs
        if programs is None:
            raise InputError(f"`{self.plan.model}` is closed; load it again to run it.")
        return programs

    def close(self) -> None:
        """Release all memory; waits for runs in progress. Further calls have no effect."""
        with self._closing:
            if self._programs is not None:
                self._close_sessions()
                self._programs.close()
                self._programs = None
                self._variants = None  # releases the file that it may have mapped
                self._kept = None

    @property
    def is_closed(self) -> bool:
        """Whether `close` has released all memory."""
        return self._programs is None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()

    def __repr__(self) -> str:
        state = "closed" if self.is_closed else f"peak {self.plan.peak_bytes} bytes"
        return f"<tightship.Model {self.plan.model}: {state}>"
