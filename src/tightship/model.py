"""A loaded model: what `load` returns, and the one door to running it."""

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from tightship import feeds
from tightship._core import NumpyBound, StopFlag
from tightship.engine.arena_pool import ArenaPool
from tightship.engine.executable import Progress, build
from tightship.engine.executor import execute
from tightship.engine.limits import Limits
from tightship.engine.memory_plan import MemoryPlan
from tightship.engine.prepare import Prepared
from tightship.engine.program import Space
from tightship.errors import InputError
from tightship.graph import DType
from tightship.resource import HostResource

if TYPE_CHECKING:
    from tightship.engine.profile import Profile

Array = NDArray[Any]


class Model:
    """A model with its weights packed, ready to run in exactly what its plan says.

    May be run from several threads at once: each run reserves an arena of its own, and waits
    for one where the limit allows no more.

    Attributes:
        plan: Every byte it takes, and where.
    """

    def __init__(
        self,
        prepared: Prepared,
        arena_count: int,
        dynamic_bytes: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.plan: MemoryPlan = prepared.plan
        self._lowered = prepared.placement.lowered
        self._resource = HostResource()
        executable = build(prepared.placement, self._resource, progress)
        self._dynamic_bytes = dynamic_bytes
        self._pool: ArenaPool | None = ArenaPool(executable, self._resource, arena_count)
        self._closing = threading.Lock()

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
        """Element type and shape of every input; the shape is None where any will do."""
        return {
            name: (operand.dtype, None if operand.space is Space.OBJECT else operand.shape)
            for name, operand in self._lowered.inputs.items()
        }

    def __call__(self, *arrays: ArrayLike, **named: ArrayLike) -> Array | tuple[Array, ...]:
        """Run on arrays given in order or by name.

        Returns:
            The output, or a tuple of them in the model's order where there are several.

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

    def run(
        self,
        inputs: Mapping[str, ArrayLike],
        *,
        outputs: Mapping[str, Array] | None = None,
        timeout_s: float | None = None,
        stop: StopFlag | None = None,
    ) -> dict[str, Array]:
        """Run the model once.

        Args:
            inputs: An array for every input name, of its dtype and shape; any strides and byte
                order. C-contiguous ones in native byte order are read where they are.
            outputs: Arrays to write some or all outputs into: C-contiguous, of their dtype
                and shape, apart from the inputs and from each other.
            timeout_s: Seconds after which the run ends, waiting for an arena or between two steps.
            stop: Set it from another thread to end the run likewise.

        Returns:
            An array for every output name: the caller's where one was given, else a new one
            that stays valid.

        Raises:
            InputError: A name, dtype or shape does not fit, or the model is closed.
            DeadlineError: The timeout passed.
            StoppedError: `stop` was set.
            OutOfMemoryError: Steps outside the plan would take more than `dynamic_memory`.
        """
        pool = self._open_pool()
        deadline = None if timeout_s is None else time.monotonic_ns() + int(timeout_s * 1e9)
        bound = None if self._dynamic_bytes is None else NumpyBound(self._dynamic_bytes)
        limits = Limits(StopFlag() if stop is None else stop, deadline, bound)
        with pool.reserved(limits) as arena:  # inputs and outputs are counted with an arena
            fed = feeds.bind(self._lowered, inputs, outputs or {})
            execute(pool.executable, arena, fed.external, fed.objects, limits)
        return {
            name: fed.objects[name]
            if operand.space is Space.OBJECT
            else fed.external[operand.index]
            for name, operand in self._lowered.outputs.items()
        }

    def profile(self, inputs: Mapping[str, ArrayLike], *, repeat: int = 10) -> "Profile":
        """Run the model once untimed, then `repeat` times with every step timed.

        Args:
            inputs: As for `run`.
            repeat: How often; a step's time is the median.

        Raises:
            InputError: As `run`; also fewer than one run.
            OutOfMemoryError: As `run`.
        """
        from tightship.engine.profile import profile_of, timed_run

        if repeat < 1:
            raise InputError(f"`repeat` is {repeat}; it must be at least 1.")
        pool, laps = self._open_pool(), []
        for _ in range(1 + repeat):
            bound = None if self._dynamic_bytes is None else NumpyBound(self._dynamic_bytes)
            limits = Limits(dynamic=bound)
            with pool.reserved(limits) as arena:
                fed = feeds.bind(self._lowered, inputs, {})
                laps.append(timed_run(pool.executable, arena, fed.external, fed.objects, limits))
        return profile_of(pool.executable, self.plan, laps[1:])

    def _open_pool(self) -> ArenaPool:
        if self._pool is None:
            raise InputError(f"`{self.plan.model}` is closed; load it again to run it.")
        return self._pool

    def close(self) -> None:
        """Give all memory back; waits for runs that are going on. Harmless when repeated."""
        with self._closing:
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._pool is None else f"peak {self.plan.peak_bytes} bytes"
        return f"<tightship.Model {self.plan.model}: {state}>"
