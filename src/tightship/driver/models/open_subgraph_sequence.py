"""Models with loops and branches whose input dimensions requests determine."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from tightship.driver.memory.mappings import Array
from tightship.driver.models.loader import Loader
from tightship.driver.models.subgraph_sequence import Limit, RunDeferred, SubgraphSequence
from tightship.driver.nnapi.routine import Routine
from tightship.driver.types.dimensions import Dimensions
from tightship.graph import Graph
from tightship.model import Model

CHAINS_MAX = 8
"""Dimensions for which such a model stays loaded, besides the first."""

Translate = Callable[[Mapping[int, Dimensions]], Routine]
"""Translates a model for inputs of these dimensions, by position."""
Rows = tuple[Dimensions, ...]


@dataclass(slots=True, eq=False)
class _Held:
    """Model loaded for some dimensions, and the number of its current runs."""

    chain: SubgraphSequence
    run_count: int = 0


class OpenSubgraphSequence:
    """Routine that is loaded again for other dimensions of its inputs, over the same weights.

    The creator runs and closes deferred routines.

    Attributes:
        input_names, output_names: Names in order.
    """

    def __init__(
        self, first: Routine, translate: Translate, loader: Loader, run_deferred: RunDeferred
    ) -> None:
        """Load it for the dimensions of `first`, which is never evicted."""
        self._translate, self._loader, self._run_deferred = translate, loader, run_deferred
        self._first = SubgraphSequence(first, loader.once().model, run_deferred)
        self._first_key = tuple(tensor.shape for tensor in first.input_tensors)
        self._others: OrderedDict[Rows, _Held] = OrderedDict()
        self._lock = threading.Lock()
        self.input_names = self._first.input_names
        self.output_names = self._first.output_names

    @property
    def programs(self) -> tuple[Model, ...]:
        """Programs of the first dimensions, which own the weights."""
        return self._first.programs

    def run(
        self, inputs: Mapping[str, Array], outputs: Mapping[str, Array], limit: Limit
    ) -> dict[str, Array]:
        """Run like `SubgraphSequence.run`, after loading for new dimensions.

        Raises:
            DriverError, TightshipError: It cannot be translated or loaded for them.
        """
        key = tuple(inputs[name].shape for name in self.input_names)
        with self._taken(key) as chain:
            return chain.run(inputs, outputs, limit)

    @contextmanager
    def _taken(self, key: Rows) -> Iterator[SubgraphSequence]:
        if key == self._first_key:
            yield self._first
            return
        with self._lock:
            held = self._others.get(key) or self._loaded(key)
            self._others.move_to_end(key)
            held.run_count += 1
        try:
            yield held.chain
        finally:
            with self._lock:
                held.run_count -= 1

    def _loaded(self, key: Rows) -> _Held:
        """Load it for other dimensions and evict the least recently used that do not run."""
        idle = [each for each, held in self._others.items() if not held.run_count]
        for each in idle[: max(0, len(self._others) - CHAINS_MAX + 1)]:
            self._others.pop(each).chain.close()
        bases = iter(self._first.programs)

        def load(graph: Graph) -> Model:
            base = next(bases, None)  # the number of deferred routines may differ
            return self._loader.model(graph) if base is None else self._loader.like(base, graph)

        routine = self._translate(dict(enumerate(key)))
        held = self._others[key] = _Held(SubgraphSequence(routine, load, self._run_deferred))
        return held

    def close(self) -> None:
        """Wait for current runs and free all memory."""
        for held in self._others.values():
            held.chain.close()
        self._first.close()
