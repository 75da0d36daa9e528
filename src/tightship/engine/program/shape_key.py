"""Keys of programs, made of their input shapes."""

from tightship.engine.program.program import Lowered, Space

Key = tuple[tuple[str, tuple[int, ...]], ...]
"""Name and shape of each input of a program."""


def key_of(lowered: Lowered) -> Key:
    """Return the input shapes that a program is for."""
    return tuple(
        (name, operand.shape)
        for name, operand in lowered.inputs.items()
        if operand.space is not Space.OBJECT
    )
