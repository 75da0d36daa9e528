"""Steps whose backward path another framework may still ask for, and the arenas they have."""

import itertools
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.engine.arenas.joint_arenas import JointArenas
from tightship.errors import InputError
from tightship.training.split_step import BegunStep

Array = NDArray[Any]

OPEN_MAX = 1 << 20


@dataclass(slots=True)
class OpenSteps:
    """Steps by the tokens that stand for them.

    Attributes:
        arenas: Where they run.
        begun: Steps by number.
        graphs: What gives back the memory of each compiled graph, by number.
        forgotten: Numbers of tokens and graphs that are gone; `end_forgotten` gives back what they
            have, as what lets them go may be in the middle of taking an arena.
    """

    arenas: JointArenas = field(default_factory=lambda: JointArenas(arenas=OPEN_MAX))
    begun: dict[int, BegunStep] = field(default_factory=dict)
    graphs: dict[int, Callable[[], None]] = field(default_factory=dict)
    forgotten: deque[int] = field(default_factory=deque)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def token(self, step: BegunStep, drawn: Array) -> Array:
        """An array that stands for a step, and has what its dropouts draw by behind its number.

        Once it is gone, the step is forgotten.
        """
        number = next(self._numbers)
        token = np.array([number, *drawn])
        self.begun[number] = step
        weakref.finalize(token, self.forgotten.append, number).atexit = False
        return token

    def close_after(self, graph: object, close: Callable[[], None]) -> None:
        """Call `close` once nobody has a compiled graph; what it calls does not have it either."""
        number = next(self._numbers)
        self.graphs[number] = close
        weakref.finalize(graph, self.forgotten.append, number).atexit = False

    def found(self, token: Array, *, keeps: bool) -> BegunStep:
        """The step that a token stands for; nobody else ends it, unless it is kept.

        Raises:
            InputError: There is none: the token is a copy, and what was copied is gone.
        """
        number = int(token[0])
        step = self.begun.get(number) if keeps else self.begun.pop(number, None)
        if step is None:
            raise InputError(
                "What the backward path reads is gone: a hook of saved tensors has copied the "
                "tensor that stands for it. Run the module without such a hook."
            )
        return step

    def end_forgotten(self) -> None:
        """Give back what steps and graphs have that nobody can ask for."""
        while self.forgotten:
            self._end(self.forgotten.popleft())

    def _end(self, number: int) -> None:
        step, close = self.begun.pop(number, None), self.graphs.pop(number, None)
        if step is not None:
            step.end()
        if close is not None:
            close()

    def close(self) -> None:
        """Give all memory back, that of compiled graphs too, where no step runs now.

        Graphs may be kept beyond the end of the interpreter, by a framework that caches them for
        code objects; their native programs must be gone by then.
        """
        for step in self.begun.values():
            step.end()
        self.begun.clear()
        closers = list(self.graphs.values())
        self.graphs.clear()
        if not self.arenas.used_bytes:
            for close in closers:
                close()
            self.arenas.close()
