"""Models of operands whose input dimensions requests determine."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from tightship.driver.models.loader import Loader
from tightship.driver.models.open_subgraph_sequence import OpenSubgraphSequence, Rows, Translate
from tightship.driver.models.subgraph_sequence import RunDeferred
from tightship.driver.nnapi.routine import GraphStage, Routine
from tightship.driver.types.dimensions import Dimensions
from tightship.graph import Graph, Shape
from tightship.graph.open_graphs import OpenGraphs
from tightship.model import Model

SHAPES_MAX = 256
"""Dimensions of inputs for which those of the outputs are cached."""


class OpenOperands:
    """Model that is translated for the dimensions of each request.

    Programs for some dimensions stay loaded, over the weights of the first.
    """

    def __init__(
        self,
        translate: Translate,
        declared: Sequence[Dimensions],
        load: Loader,
        run_deferred: RunDeferred,
    ) -> None:
        """Load nothing yet; `declared` has the dimensions of the inputs, 0 where unknown."""
        self._translate, self._declared, self._load = translate, declared, load
        self._run_deferred = run_deferred
        self._shapes: OrderedDict[Rows, Rows] = OrderedDict()
        self._lock = threading.Lock()
        self._model: Model | OpenSubgraphSequence | None = None

    def at(self, inputs: Rows) -> tuple[Model | OpenSubgraphSequence, Rows]:
        """Return what runs for inputs of these dimensions, and the dimensions of its outputs.

        Those that only a run determines are empty.

        Raises:
            DriverError: As from `routine_of`.
            TightshipError: The engine refuses it.
        """
        known = self._shapes.get(inputs)
        if known is not None and self._model is not None:
            return self._model, known
        routine = self._translate(dict(enumerate(inputs)))
        outputs = tuple(shape or () for shape in routine.output_shapes)
        with self._lock:
            if self._model is None:
                self._model = self._loaded(routine, inputs)
            self._shapes[inputs] = outputs
            while len(self._shapes) > SHAPES_MAX:
                self._shapes.popitem(last=False)
            return self._model, outputs

    def running(self, inputs: Rows) -> Model | OpenSubgraphSequence:
        """Return what runs for inputs of these dimensions, without those of its outputs."""
        return self._model or self.at(inputs)[0]

    @property
    def programs(self) -> tuple[Model, ...]:
        """Programs loaded so far; none before the first run."""
        model = self._model
        if model is None:
            return ()
        return (model,) if isinstance(model, Model) else model.programs

    def close(self) -> None:
        """Free all memory; nothing may be running."""
        if self._model is not None:
            self._model.close()

    def _loaded(self, routine: Routine, inputs: Rows) -> Model | OpenSubgraphSequence:
        if len(routine.stages) > 1 or not isinstance(routine.stages[0], GraphStage):
            return OpenSubgraphSequence(routine, self._translate, self._load, self._run_deferred)
        names = [tensor.name for tensor in routine.input_tensors]

        def read(shapes: Mapping[str, Dimensions]) -> Graph:
            (stage,) = self._translate({at: shapes[name] for at, name in enumerate(names)}).stages
            assert isinstance(stage, GraphStage), stage
            return stage.graph

        kinds = zip(names, routine.input_tensors, self._declared, strict=True)
        declared = {name: _declared(row, len(tensor.shape)) for name, tensor, row in kinds}
        first = dict(zip(names, inputs, strict=True))
        return self._load.open_model(OpenGraphs(read, declared, first))


def _declared(row: Dimensions, rank: int) -> Shape | None:
    """Convert dimensions to an engine's shape; None for an unknown rank."""
    if rank and not row:
        return None
    return tuple(length or f"axis {axis}" for axis, length in enumerate(row))
