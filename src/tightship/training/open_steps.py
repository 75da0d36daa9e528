"""Keeps steps whose backward pass another framework may still request, and their arenas."""

import itertools
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.errors import InputError
from tightship.training.split_step import BegunStep

Array = NDArray[Any]

OPEN_MAX = 1 << 20


@dataclass(slots=True)
class OpenSteps:
    """Steps by the tokens that stand for them.

    Attributes:
        arenas: Arenas that the steps run in.
        begun: Steps by number.
        graphs: Functions that release the memory of compiled graphs, by number.
        forgotten: Numbers of tokens and graphs that were collected. `end_forgotten` releases their
            memory later, because a finalizer may run while its thread is taking an arena.
    """

    arenas: ArenaGroup = field(default_factory=lambda: ArenaGroup(arenas=OPEN_MAX))
    begun: dict[int, BegunStep] = field(default_factory=dict)
    graphs: dict[int, Callable[[], None]] = field(default_factory=dict)
    forgotten: deque[int] = field(default_factory=deque)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def token(self, step: BegunStep, drawn: Array) -> Array:
        """Make an array that stands for a step: its number, followed by the dropouts' draws.

        When the array is collected, the step is forgotten.

        Args:
            step: The step.
            drawn: Numbers that its dropouts draw by; empty without dropouts.
        """
        number = next(self._numbers)
        token = np.array([number, *drawn])
        self.begun[number] = step
        weakref.finalize(token, self.forgotten.append, number).atexit = False
        return token

    def close_after(self, graph: object, close: Callable[[], None]) -> None:
        """Call `close` after a compiled graph is collected; `close` must not refer to the graph.

        Args:
            graph: The compiled graph; only a weak reference to it is kept.
            close: Releases the graph's memory.
        """
        number = next(self._numbers)
        self.graphs[number] = close
        weakref.finalize(graph, self.forgotten.append, number).atexit = False

    def found(self, token: Array, *, keeps: bool) -> BegunStep:
        """Return the step that a token stands for, and remove it unless `keeps`.

        Args:
            token: The array of `token`.
            keeps: Whether the step stays for a further backward pass.

        Raises:
            InputError: The step is gone, because the token is a copy and the original was
                collected.
        """
        number = int(token[0])
        step = self.begun.get(number) if keeps else self.begun.pop(number, None)
        if step is None:
            raise InputError(
                "The values that the backward pass reads are gone, because a hook of saved tensors "
                "has copied the tensor that stands for them. Run the module without such a hook."
            )
        return step

    def end_forgotten(self) -> None:
        """Release the memory of steps and graphs that were collected."""
        while self.forgotten:
            self._end(self.forgotten.popleft())

    def _end(self, number: int) -> None:
        step, close = self.begun.pop(number, None), self.graphs.pop(number, None)
        if step is not None:
            step.end()
        if close is not None:
            close()

    def close(self) -> None:
        """Release all memory, including that of compiled graphs if no step is running.

        A framework may cache graphs beyond the end of the interpreter, but their native programs
        must be gone by then.
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
