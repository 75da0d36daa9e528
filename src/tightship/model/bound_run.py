"""Runs a model repeatedly on the same arrays, which are checked once."""

import threading
import weakref
from collections.abc import Mapping

from tightship._core import KernelError, NativeContext, StopFlag
from tightship.engine.cache.program_cache import ProgramCache
from tightship.engine.cache.program_eviction import Program
from tightship.engine.compile.input_shapes import Key
from tightship.engine.program.program import Space
from tightship.engine.run.executable import NativeSegment
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits, end
from tightship.errors import InputError
from tightship.model import feeds
from tightship.model.feeds import Array
from tightship.public_calls import explains_memory, public_methods


class LoneContext(NativeContext):
    """A context that keeps its program, and the program's weights, alive.

    The model may evict the program, or make others for the same shapes, in the meantime.
    """

    def __init__(self, program: Program) -> None:
        """Make a context of a program that needs no arena and has native steps."""
        assert program.executable.native is not None, program
        super().__init__(program.executable.native, 0)
        self.program = program


class LoneRun:
    """Run by the native core alone, for one thread at a time."""

    def __init__(self, context: NativeContext, steps: tuple[int, int]) -> None:
        """Run steps [first, last) of a context that has all its arrays."""
        self._context, self._steps = context, steps
        self._lock = threading.Lock()

    def run(self, stop: StopFlag) -> bool:
        """Run once; return False if another thread is running it.

        Raises:
            InputError, StoppedError: As `Model.run`.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            end(self._context.run(self._steps, stop))
        except KernelError as error:
            raise InputError(str(error)) from None
        finally:
            self._lock.release()
        return True


@public_methods
class BoundRun:
    """The result of `Model.bind`: keeps the arrays, and may be run by several threads.

    A bound run keeps no program, because the model decides how many programs it holds.
    """

    def __init__(
        self,
        programs: ProgramCache,
        key: Key,
        arrays: tuple[Mapping[str, Array], Mapping[str, Array]],
        workers: int = 1,
    ) -> None:
        """Keep the arrays; the first run binds them, because a program may have to be made first.

        Args:
            programs: Programs of the model.
            key: Shapes of the inputs.
            arrays: Inputs and outputs by name.
            workers: Steps that may run at once.
        """
        self._programs, self._key = programs, key
        self._inputs, self._outputs = arrays
        self._workers = workers
        self._fed: tuple[weakref.ref[Program], feeds.Bound] | None = None

    @explains_memory("a run of a model")
    def run(self, stop: StopFlag) -> None:
        """Run once, reading and writing the arrays in place.

        Args:
            stop: Flag that ends the run when another thread sets it.

        Raises:
            InputError, CapacityError, GraphError, StoppedError, OutOfMemoryError: As `Model.run`.
        """
        limits = Limits(stop, None, self._programs.dynamic, self._workers)
        with self._programs.reserved(self._key, limits) as (program, arena):
            fed = self._bound(program)
            objects = dict(fed.objects) if fed.objects else {}
            execute(program.executable, arena, fed.external, objects, limits)

    def alone(self) -> tuple[NativeContext, tuple[int, int]] | None:
        """Return a context, with the range of its steps, that runs this without an arena.

        Returns:
            None if the program needs an arena, has steps in Python, has been evicted, or has
            weights of its own, which the context would keep beyond the model's limit. The arrays
            must outlive the context, and only one thread at a time may run it.
        """
        if self._fed is None:
            return None
        known, fed = self._fed
        program = known()
        if program is None or self._programs.has_own_weights(program):
            return None
        executable = program.executable
        if executable.arena_bytes or executable.native is None or len(executable.segments) != 1:
            return None
        (segment,) = executable.segments
        if not isinstance(segment, NativeSegment):
            return None
        context = LoneContext(program)
        for slot, array in fed.external.items():
            context.bind_external(slot, array)
        return context, (segment.first, segment.last)

    def _bound(self, program: Program) -> feeds.Bound:
        """Return the arrays by slot of a program, which may be another one than in the last run."""
        if self._fed is None or self._fed[0]() is not program:
            fed = feeds.bind(
                program.lowered, self._inputs, self._outputs, in_order=self._workers == 1
            )
            for name, operand in program.lowered.inputs.items():
                if (
                    operand.space is Space.OBJECT
                    or fed.external[operand.slot] is not (self._inputs[name])
                ):
                    raise InputError(
                        f"Input `{name}` cannot be read in place; give a C-contiguous array in "
                        "native byte order, or use `Model.run`."
                    )
            self._fed = weakref.ref(program), fed
        return self._fed[1]


def lone_run(bound: BoundRun) -> LoneRun | None:
    """Return what repeats a run without an arena, where `BoundRun.alone` has it."""
    found = bound.alone()
    return None if found is None else LoneRun(*found)
