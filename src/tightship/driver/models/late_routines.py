"""Routines of a model that are translated while it runs, when dimensions are known."""

import threading
from collections.abc import Sequence

from tightship.driver.memory.mappings import Array
from tightship.driver.models.chain import Limit
from tightship.driver.models.loader import Loader
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.nnapi.routine import LateRoutine
from tightship.driver.types.status import ErrorStatus, failure
from tightship.errors import DriverError
from tightship.model import Model

VALUE_BYTES_MAX = (1 << 32) - 1
"""Of what a loop carries: what NNAPI has lengths for; a state may double with every turn."""

PROGRAMS_MAX = 256
"""Shapes that each stays ready for, within the engine's bytes: turns of a loop that grows."""


class LateRoutines:
    """Each is loaded once, whichever part of the model runs it, over one copy of its weights."""

    def __init__(self, loader: Loader) -> None:
        """Loads nothing."""
        self._loader = loader.once(PROGRAMS_MAX)
        self._held: dict[tuple[int, int], OpenOperands] = {}
        self._lock = threading.Lock()

    def run(self, late: LateRoutine, given: Sequence[Array], limit: Limit) -> list[Array]:
        """The outputs of a routine for these inputs, both in order.

        Raises:
            DeadlineError: A loop ran longer than it may.
            DriverError: GENERAL_FAILURE: it cannot be translated for these dimensions;
                RESOURCE_EXHAUSTED_PERSISTENT: a value has become too large.
            StoppedError: It was stopped.
            TightshipError: The engine refuses it.
        """
        read = [given[place] for place in late.places]
        for value in read:
            if value.nbytes > VALUE_BYTES_MAX:
                raise DriverError(
                    f"A value of dimensions {list(value.shape)} was made, of {value.nbytes} "
                    f"bytes; what loops and branches give may have {VALUE_BYTES_MAX}.",
                    status=ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
                )
        try:
            return self._run(self._of(late), read, limit)
        except DriverError as error:
            if error.status == ErrorStatus.INVALID_ARGUMENT:  # the request broke no rule
                raise failure(str(error)) from error
            raise

    def _of(self, late: LateRoutine) -> OpenOperands:
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
        """What is loaded of them."""
        return tuple(program for held in [*self._held.values()] for program in held.programs)

    def close(self) -> None:
        """Give all memory back; nothing runs any more."""
        for held in self._held.values():
            held.close()
