"""Shapes of a program's inputs, as the key that programs are found by."""

from tightship.engine.program.program import Lowered, Space

Key = tuple[tuple[str, tuple[int, ...]], ...]
"""Shapes of a program's inputs."""


def key_of(lowered: Lowered) -> Key:
    """The input shapes that a program is for."""
    return tuple(
        (name, operand.shape)
        for name, operand in lowered.inputs.items()
        if operand.space is not Space.OBJECT
    )
