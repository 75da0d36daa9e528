"""A run's arena filled with bytes that must not matter."""

from tightship import Model
from tightship.engine.run.limits import Limits

NOT_A_NUMBER = 0xFF
"""Every float32 made of it is NaN."""
LARGE = 0x7F
"""Every float32 made of it is about 3.4e38."""


def poison(model: Model, byte: int = NOT_A_NUMBER) -> None:
    """Fill the arena that the next run will have."""
    with model._programs.reserved(model._key, Limits()) as (_, arena):
        arena.block.array()[:] = byte
