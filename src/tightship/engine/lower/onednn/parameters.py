"""Weights and other parameters of a primitive, constant or computed."""

from tightship._core import MemoryDesc
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.program.program import Operand


def parameter(builder: Builder, name: str, source: MemoryDesc, desc: MemoryDesc) -> Operand:
    """A parameter in the layout that a primitive wants: packed, or reordered in each run.

    Args:
        builder: The program so far.
        name: A constant or another value.
        source: Its bytes in row-major order, described with the dimensions of `desc`.
        desc: The layout wanted.
    """
    if builder.constant(name) is not None:
        return builder.weight(name, source, desc)
    plain = builder.dense(name).under(source)
    if source == desc:
        return plain
    copy = builder.room(f"{name}.{desc.format}", desc)
    builder.reorder(plain, copy)
    return copy
