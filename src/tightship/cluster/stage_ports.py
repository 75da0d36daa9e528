"""Names and types as which values cross cuts of a program."""

from tightship.engine.program.program import Lowered, Operand, Space
from tightship.graph import DType


def ports(lowered: Lowered) -> dict[int, Operand]:
    """Return an operand of its own name for each slot, as which it crosses a cut.

    Inputs and outputs of the program are themselves. Other values have their type and shape if they
    are row-major wherever they are used, and are bytes otherwise: blocks of channels, or parts.
    """
    own = {each.slot: each._replace(name=name)
           for name, each in (*lowered.inputs.items(), *lowered.outputs.items())}  # fmt: skip
    plain: dict[int, Operand | None] = {}
    for step in lowered.steps:
        for each in (*step.writes, *step.reads):
            if each.space is Space.ARENA:
                first = plain.setdefault(each.slot, each)
                if first is not None and (each.dtype is not first.dtype or not _is_plain(each)):
                    plain[each.slot] = None
    taken = {each.name for each in own.values()}
    for slot, found in plain.items():
        size, name = lowered.slots[slot].size_bytes, lowered.slots[slot].name
        while name in taken:
            name = f"{name}#{slot}"
        taken.add(name)
        if found is not None and found._replace(desc=None).size_bytes == size:
            port = found._replace(name=name, desc=None)
        else:
            port = Operand(name, Space.ARENA, slot, DType.UINT8, (size,))
        own.setdefault(slot, port)
    return own


def _is_plain(operand: Operand) -> bool:
    desc = operand.desc
    if operand.offset_bytes:
        return False
    return desc is None or (desc.is_plain and not desc.offset_bytes and _is_row_major(operand))


def _is_row_major(operand: Operand) -> bool:
    assert operand.desc is not None
    length, expected = 1, []
    for dimension in reversed(operand.desc.dims):
        expected.append(length)
        length *= dimension
    return all(
        stride == wanted or dimension == 1
        for stride, wanted, dimension in zip(
            operand.desc.strides, reversed(expected), operand.desc.dims, strict=True
        )
    )
