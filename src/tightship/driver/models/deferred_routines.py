"""Routines of a model that are translated during a run, when dimensions are known."""

import threading
from collections.abc import Sequence

from tightship.driver.memory.mappings import Array
from tightship.driver.models.loader import Loader
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.models.subgraph_sequence import Limit
from tightship.driver.nnapi.routine import DeferredRoutine
from tightship.driver.types.status import ErrorStatus, failure
from tightship.errors import DriverError
from tightship.model import Model

VALUE_BYTES_MAX = (1 << 32) - 1
"""Largest value of a loop, by NNAPI's limit of lengths; a state may double with each iteration."""

PROGRAMS_MAX = 256
"""Shapes for which each routine stays loaded, within the engine's bytes: a state may grow."""


class DeferredRoutines:
    """Deferred routines, each loaded once for the whole model, over one copy of the weights."""

    def __init__(self, loader: Loader) -> None:
        """Create an empty table."""
        self._loader = loader.once(PROGRAMS_MAX)
        self._held: dict[tuple[int, int], OpenOperands] = {}
        self._lock = threading.Lock()

    def run(self, late: DeferredRoutine, given: Sequence[Array], limit: Limit) -> list[Array]:
        """Return the outputs of a routine for these inputs, both in order.

        Raises:
            DeadlineError: A loop exceeded its timeout.
            DriverError: GENERAL_FAILURE: it cannot be translated for these dimensions;
                RESOURCE_EXHAUSTED_PERSISTENT: a value is too large.
            StoppedError: The run was stopped.
            TightshipError: The engine refuses it.
        """
        read = [given[place] for place in late.places]
        for value in read:
            if value.nbytes > VALUE_BYTES_MAX:
                raise DriverError(
                    f"A value of dimensions {list(value.shape)} has {value.nbytes} bytes; "
                    f"loops and branches may pass on {VALUE_BYTES_MAX}.",
                    status=ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
                )
        try:
            return self._run(self._of(late), read, limit)
        except DriverError as error:
            if error.status == ErrorStatus.INVALID_ARGUMENT:  # not the request's fault
                raise failure(str(error)) from error
            raise

    def _of(self, late: DeferredRoutine) -> OpenOperands:
        with self._lock:
            held = self._held.get(late.key)
            if held is None:
                held = OpenOperands(late.translate, late.declared, self._loader, self.run)
                self._held[late.key] = held
            return held

    def _run(self, held: OpenOperands, read: Sequence[Array], limit: Limit) -> list[Array]:
        model = held.running(tuple(value.shape for value in read))
        inputs = dict(zip(model.input_names, read, strict=True))
        if isinstance(model, Model):
            return list(model.run(inputs, timeout_s=limit.left_s(), stop=limit.stop).values())
        return list(model.run(inputs, {}, limit).values())

    @property
    def programs(self) -> tuple[Model, ...]:
        """Programs loaded so far."""
        return tuple(program for held in [*self._held.values()] for program in held.programs)

    def close(self) -> None:
        """Free all memory; nothing may be running."""
        for held in self._held.values():
            held.close()
