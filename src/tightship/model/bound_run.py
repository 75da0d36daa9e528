"""A run of a model on arrays that stay: they are checked once."""

import weakref
from collections.abc import Mapping

from tightship._core import NativeContext, NumpyBound, StopFlag
from tightship.engine.allocation import memory_told
from tightship.engine.executable import NativeSegment
from tightship.engine.executor import execute
from tightship.engine.limits import Limits
from tightship.engine.program import Space
from tightship.engine.program_cache import ProgramCache
from tightship.engine.shelf import Key, Program
from tightship.errors import InputError
from tightship.model import feeds
from tightship.model.feeds import Array
from tightship.public_calls import public_methods


class LoneContext(NativeContext):
    """A context that keeps its program, and the weights of that, for as long as it is there.

    Others may be made for the same shapes meanwhile, and this one be let go by its model.
    """

    def __init__(self, program: Program) -> None:
        """`program` needs no arena and has native steps."""
        assert program.executable.native is not None, program
        super().__init__(program.executable.native, 0)
        self.program = program


@public_methods
class BoundRun:
    """What `Model.bind` returns; it keeps the arrays, and may be run from several threads.

    It keeps no program: how many there are, and what they take, is for the model to say.
    """

    def __init__(
        self,
        programs: ProgramCache,
        key: Key,
        arrays: tuple[Mapping[str, Array], Mapping[str, Array]],
        dynamic_bytes: int | None,
    ) -> None:
        """Binds nothing yet, as the program for these shapes may have to be made.

        Args:
            programs: Of the model.
            key: Shapes of the inputs.
            arrays: Inputs and outputs by name.
            dynamic_bytes: What steps outside the plan may allocate.
        """
        self._programs, self._key = programs, key
        self._inputs, self._outputs = arrays
        self._dynamic_bytes = dynamic_bytes
        self._fed: tuple[weakref.ref[Program], feeds.Bound] | None = None

    @memory_told("a run of a model")
    def run(self, stop: StopFlag) -> None:
        """Run once, reading and writing the arrays where they are.

        Args:
            stop: Set it from another thread to end the run.

        Raises:
            InputError, CapacityError, GraphError, StoppedError, OutOfMemoryError: As `Model.run`.
        """
        bound = None if self._dynamic_bytes is None else NumpyBound(self._dynamic_bytes)
        limits = Limits(stop, None, bound)
        with self._programs.reserved(self._key, limits) as (program, arena):
            fed = self._bound(program)
            objects = dict(fed.objects) if fed.objects else {}
            execute(program.executable, arena, fed.external, objects, limits)

    def alone(self) -> tuple[NativeContext, tuple[int, int]] | None:
        """A context, and its steps, that run this without an arena; None if it needs one.

        Also None if steps run in Python, its program is not there, or has weights of its own, which
        a context would keep beyond what the model may take. The arrays outlive it; it runs once at
        a time.
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
        """The arrays by the slots of a program, which may have been made anew since."""
        if self._fed is None or self._fed[0]() is not program:
            fed = feeds.bind(program.lowered, self._inputs, self._outputs)
            for name, operand in program.lowered.inputs.items():
                if (
                    operand.space is Space.OBJECT
                    or fed.external[operand.slot] is not (self._inputs[name])
                ):
                    raise InputError(
                        f"Input `{name}` cannot be read where it is; give a C-contiguous array in "
                        "native byte order, or use `Model.run`."
                    )
            self._fed = weakref.ref(program), fed
        return self._fed[1]
