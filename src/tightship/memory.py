"""Memory of all models of the process: what they hold, and giving back what no run has."""

from typing import TYPE_CHECKING

from tightship.engine.library import release_unused
from tightship.engine.primitive_cache import release_idle_primitives
from tightship.errors import InputError
from tightship.model import LOADED
from tightship.public_calls import public_call

if TYPE_CHECKING:
    from tightship.engine.statistics import MemoryStatistics


@public_call
def memory_stats() -> "MemoryStatistics":
    """What the models of this process hold: weights, arenas and programs, summed."""
    from tightship.engine.statistics import MemoryStatistics  # few ask for them

    total = MemoryStatistics()
    for model in list(LOADED):
        try:
            total += model.memory_stats()
        except InputError:  # closed
            continue
    return total


@public_call
def release_unused_memory() -> int:
    """Give back what no run of any model has: arenas, programs, primitives, heap, code.

    Returns:
        Bytes of weights and arenas that went back; the rest is not counted.
    """
    released = 0
    for model in list(LOADED):
        try:
            released += model.release_unused_memory()
        except InputError:  # closed
            continue
    release_idle_primitives()
    release_unused()
    return released
