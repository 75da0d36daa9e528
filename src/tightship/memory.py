"""Reports the memory of all models of the process, and releases what no run is using."""

from typing import TYPE_CHECKING

from tightship.engine.library import release_unused
from tightship.engine.primitive_cache import release_idle_primitives
from tightship.errors import InputError
from tightship.model import LOADED
from tightship.public_calls import public_call

if TYPE_CHECKING:
    from tightship.engine.cache.statistics import MemoryStatistics


@public_call
def memory_stats() -> "MemoryStatistics":
    """Sum the memory of all models of this process: weights, arenas and programs.

    Returns:
        The sum of `Model.memory_stats()` over the models that are open, in bytes.
    """
    from tightship.engine.cache.statistics import MemoryStatistics  # few ask for them

    total = MemoryStatistics()
    for model in list(LOADED):
        try:
            total += model.memory_stats()
        except InputError:  # another thread closed the model after the list was made
            continue
    return total


@public_call
def release_unused_memory() -> int:
    """Release memory that no run of any model is using: arenas, programs, primitives, heap, code.

    Returns:
        Bytes of weights and arenas that were released; other memory is not counted.
    """
    released = 0
    for model in list(LOADED):
        try:
            released += model.release_unused_memory()
        except InputError:  # another thread closed the model after the list was made
            continue
    release_idle_primitives()
    release_unused()
    return released
