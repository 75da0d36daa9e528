"""Runs a model operator by operator; each obtains its primitive and memory when it comes."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Literal, get_args

from numpy.typing import ArrayLike, NDArray

from tightship._core import MemoryResource, PrimitiveCache, StopFlag
from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of, prepare
from tightship.engine.primitive_cache import process_cache
from tightship.engine.run.limits import Limits, deadline_of
from tightship.engine.run.stepwise import Pattern, Stepwise
from tightship.engine.weights.weight_store import WeightStore
from tightship.errors import InputError
from tightship.loading.opening import open_for
from tightship.model import feeds
from tightship.public_calls import public_methods
from tightship.resource import HostResource

Array = NDArray[Any]
Memory = Literal["value", "blob", "offset"]
"""Lifetime of memory for values: that of each value, or of the run, as regions that values use one
after another (`blob`) or as one region with planned offsets (`offset`)."""


@public_methods
class OperatorRunner:
    """A model whose operators run one by one, for shapes that are known when it is made.

    Weights are packed once and stay with the runner. Primitives and pools are those of the cache,
    so runners that share one find each other's. A runner serves one call at a time; others wait.
    """

    def __init__(
        self,
        model: ModelSource,
        *,
        shapes: Mapping[str, Sequence[int] | int] | None = None,
        threads: int = 1,
        memory: Memory = "value",
        cache: PrimitiveCache | None = None,
        resource: MemoryResource | None = None,
    ) -> None:
        """Lower the model, and pack its weights.

        Args:
            model: As for `tightship.load`.
            shapes: As for `tightship.load`.
            threads: Threads of each operator.
            memory: Lifetime of memory for values.
            cache: Cache of primitives, whose pools provide memory; that of the process by default.
            resource: Where pools come from; the heap by default.

        Raises:
            FormatError, GraphError: The model cannot be read, or a node cannot be run.
            InputError: A shape or `memory` is invalid, or a step runs in Python.
            LibraryError: The package was built without oneDNN.
            OutOfMemoryError: Memory for the weights cannot be allocated.
        """
        if memory not in get_args(Memory):
            raise InputError(f"`memory` is {memory!r}; give one of {', '.join(get_args(Memory))}.")
        source, settings = open_for(model, Settings(shapes, threads))
        graph = source.graph(settings.input_shapes)
        placement = prepare(graph, name_of(model), settings).placement
        self._cache = process_cache() if cache is None else cache
        self._lowered = placement.lowered
        self._steps = Stepwise(
            placement,
            self._cache,
            HostResource() if resource is None else resource,
            WeightStore(HostResource()),
            Pattern(grouping=memory),
        )
        self._turn = Lock()

    @property
    def cache(self) -> PrimitiveCache:
        """Cache of the primitives; `cache.pools` and `cache.statistics()` say what is held."""
        return self._cache

    def __call__(self, **inputs: ArrayLike) -> Array | dict[str, Array]:
        """Run with inputs by name; return the output, or a dict if there are several.

        Raises:
            InputError, OutOfMemoryError: As from `run`.
        """
        outputs = self.run(inputs)
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    def run(
        self,
        inputs: Mapping[str, ArrayLike],
        *,
        timeout_s: float | None = None,
        stop: StopFlag | None = None,
    ) -> dict[str, Array]:
        """Run every operator once; return a new array for every output.

        Args:
            inputs: An array for every input, of its dtype and shape.
            timeout_s: Seconds after which the run ends between two operators.
            stop: Flag that ends the run at the same points when another thread sets it.

        Raises:
            InputError: A name, dtype or shape does not fit, or elements are outside what an
                operator takes.
            OutOfMemoryError: The resource refuses; memory of the run is given back.
            DeadlineError, StoppedError: The run was ended.
        """
        fed = feeds.bind(self._lowered, inputs, {})
        limits = Limits(stop or StopFlag(), deadline_of(timeout_s))
        with self._turn:
            self._steps.run(fed.external, limits)
        return {name: fed.external[out.slot] for name, out in self._lowered.outputs.items()}
