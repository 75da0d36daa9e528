"""Turns Split, Slice and Gather of one index into views, if all readers accept strides."""

from tightship._core import MemoryDesc
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.views import is_view
from tightship.engine.program.program import Operand, Space
from tightship.graph import DType, Node

PARTING = frozenset({"Split", "Slice", "Gather"})


def cut(builder: Builder, node: Node) -> bool:
    """Make a node's outputs views of its input, if possible; return whether they are.

    A part keeps the whole value alive, so it pays only if no reader copies it.
    """
    return not node.fused and _parted(builder, node)


def _parted(builder: Builder, node: Node) -> bool:
    names = [name for name in (node.inputs[0], *node.writes) if name]
    if not builder.options.use_onednn or not all(
        builder.value(name).is_static
        and builder.value(name).dtype is DType.FLOAT32
        and 0 not in builder.value(name).static_shape
        for name in names
    ):
        return False
    if not builder.home_is_planned(node.inputs[0]):
        return False
    home = builder.home(node.inputs[0])
    ranges = _ranges(builder, node, home.shape)
    if (
        ranges is None
        or home.desc is None
        or not home.desc.is_plain
        or home.desc.dims != list(home.shape)
        or home.space not in (Space.ARENA, Space.EXTERNAL)
        or not all(takes_parts(builder, name) for name in node.writes)
    ):
        return False
    for name, (offsets, dims) in zip(node.outputs, ranges, strict=True):
        if name:
            _settle(builder, name, home, home.desc.part(dims, offsets))
    return True


def _settle(builder: Builder, name: str, home: Operand, part: MemoryDesc) -> None:
    shape = list(builder.value(name).static_shape) or [1]
    builder.view(name, home, part if part.dims == shape else part.reshaped(shape))


def takes_parts(builder: Builder, name: str) -> bool:
    """Whether every reader of a value, through views of it, is a kernel that takes strides."""
    return not builder.is_like_output(name) and all(
        _takes_parts(builder, reader, name) for reader in builder.readers(name)
    )


def _takes_parts(builder: Builder, reader: Node, name: str) -> bool:
    if (reader.domain, reader.operator) == ("tightship", "Attention"):
        return True
    if reader.domain or reader.fused:
        return False
    if reader.operator == "Concat":
        return True
    return (
        _passes_on(reader)
        and name == reader.inputs[0]
        and all(takes_parts(builder, output) for output in reader.writes)
    )


def _passes_on(node: Node) -> bool:
    """Whether a node has nothing but other views of its first input to give."""
    return is_view(node) or node.operator in PARTING or node.operator == "Transpose"


_Range = tuple[list[int], list[int]]
"""Offsets and lengths, by axis."""


def _ranges(builder: Builder, node: Node, shape: tuple[int, ...]) -> list[_Range] | None:
    """Return the part of the input that each output is; None unless it is a range of each axis."""
    if node.operator == "Slice":
        return _slice(builder, node, shape)
    axis = node.integer("axis", 0)
    axis %= max(len(shape), 1)
    if node.operator == "Gather":
        index = builder.known.get(node.inputs[1])
        if index is None or index.shape not in ((), (1,)):
            return None
        first = int(index.array().reshape(())) % shape[axis]
        return [_along(shape, axis, first, 1)]
    ranges, start = [], 0
    for name in node.outputs:
        length = builder.value(name).static_shape[axis] if name else 0
        ranges.append(_along(shape, axis, start, length))
        start += length
    return ranges if start == shape[axis] else None


def _slice(builder: Builder, node: Node, shape: tuple[int, ...]) -> list[_Range] | None:
    if node.version < 10:
        return None
    given = [builder.known.get(name) if name else None for name in node.inputs[1:]]
    if given[0] is None or any(
        name and constant is None for name, constant in zip(node.inputs[1:], given, strict=True)
    ):
        return None
    starts = given[0].array().reshape(-1).tolist()
    axes_of = given[2] if len(given) > 2 else None
    axes = list(range(len(starts))) if axes_of is None else axes_of.array().reshape(-1).tolist()
    steps = given[3].array().reshape(-1).tolist() if len(given) > 3 and given[3] else []
    if any(step != 1 for step in steps):
        return None
    offsets = [0] * len(shape)
    for start, axis in zip(starts, axes, strict=True):
        length = shape[int(axis)]
        offsets[int(axis)] = min(max(int(start) + (length if start < 0 else 0), 0), length)
    return [(offsets, list(builder.value(node.outputs[0]).static_shape))]


def _along(shape: tuple[int, ...], axis: int, start: int, length: int) -> _Range:
    """Return a range of one axis and all of the others."""
    offsets, dims = [0] * len(shape), list(shape)
    offsets[axis], dims[axis] = start, length
    return offsets, dims
