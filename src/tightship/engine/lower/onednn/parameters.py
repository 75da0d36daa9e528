"""Binds weights and other parameters of a primitive, constant or computed."""

from tightship._core import MemoryDesc
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.program.program import Operand


def parameter(builder: Builder, name: str, source: MemoryDesc, desc: MemoryDesc) -> Operand:
    """Return a parameter in a primitive's layout: packed, or reordered in each run.

    Args:
        builder: Program under construction.
        name: Constant or other value.
        source: Row-major layout with the dimensions of `desc`.
        desc: Layout that the primitive needs.
    """
    if builder.constant(name) is not None:
        return builder.weight(name, source, desc)
    plain = builder.dense(name).under(source)
    if source == desc:
        return plain
    copy = builder.room(f"{name}.{desc.format}", desc)
    builder.reorder(plain, copy)
    return copy
