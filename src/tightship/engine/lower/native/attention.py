"""Emits Attention over operands in their own layouts: heads may be strided, keys transposed."""

from dataclasses import dataclass

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.strides import byte_strides, plain
from tightship.engine.program.program import Operand
from tightship.graph import Node


def attention(builder: Builder, node: Node) -> None:
    """Emit one kernel; its result has heads side by side if a Transpose that follows wants that."""
    attributes = node.attributes
    query, key, value, *masks = (plain(builder, name) for name in node.inputs)
    *outer, queries, width = builder.value(node.outputs[0]).static_shape
    turned = bool(attributes["keys_turned"])
    keys = value.shape[-2]
    heads = _Heads(tuple(outer), _groups(tuple(outer), [key, value]))
    target = builder.output(node.outputs[0], _layout(builder, node))
    strides = [heads.strides(operand) for operand in (query, key, value, *masks, target)]
    if turned:
        strides[1][-2:] = reversed(strides[1][-2:])
    for mask, each in zip(masks, strides[3:], strict=False):
        each[-2:] = _repeated(mask, each[-2:], (queries, keys))
    scale, fill, ahead = attributes["scale"], attributes["fill"], attributes["ahead"]
    assert isinstance(scale, float)
    assert isinstance(fill, float)
    assert isinstance(ahead, int)
    rule = NativeKernel.AttentionRule(
        scale,
        str(attributes["mask"]),
        fill,
        ahead,
        bool(attributes["zero_if_undefined"]),
        bool(attributes["zero_if_unseen"]),
    )
    sizes = (queries, keys, query.shape[-1], width)
    kernel = NativeKernel.attention(heads.outer, sizes, rule, strides)
    builder.native(
        node,
        ("attention", kernel),
        [query, key, value, *masks],
        [target],
    )


@dataclass(frozen=True, slots=True)
class _Heads:
    """Axes before the last two, the last of them split if several query heads share keys."""

    shape: tuple[int, ...]
    groups: int

    @property
    def outer(self) -> list[int]:
        if self.groups == 1:
            return list(self.shape)
        return [*self.shape[:-1], self.shape[-1] // self.groups, self.groups]

    def strides(self, operand: Operand) -> list[int]:
        """Return the byte strides of an operand over these axes and its own last two."""
        missing = len(self.shape) + 2 - len(operand.shape)
        own = [0] * missing + byte_strides(operand)
        lengths = [1] * missing + list(operand.shape)
        kept = [0 if length == 1 else stride for stride, length in zip(own, lengths, strict=True)][
            : len(self.shape)
        ]
        if self.groups > 1:
            last = kept.pop()
            is_shared = lengths[len(self.shape) - 1] != self.shape[-1]
            kept += [last, 0] if is_shared else [last * self.groups, last]
        return [*kept, *own[-2:]]


def _groups(outer: tuple[int, ...], operands: list[Operand]) -> int:
    """Count the consecutive query heads that share a head of the keys and values."""
    for operand in operands:
        own = operand.shape[-3] if len(operand.shape) > 2 else 1
        if outer and own not in (1, outer[-1]):
            return outer[-1] // own
    return 1


def _repeated(mask: Operand, strides: list[int], shape: tuple[int, int]) -> list[int]:
    """Return the strides of a mask's last two axes; 0 where it broadcasts."""
    lengths = (1, 1, *mask.shape)[-2:]
    return [
        0 if length == 1 and wide != 1 else stride
        for stride, length, wide in zip(strides, lengths, shape, strict=True)
    ]


def _layout(builder: Builder, node: Node) -> MemoryDesc | None:
    """Return a layout with heads side by side for each query, if a Transpose reads them so."""
    name = node.outputs[0]
    shape = builder.value(name).static_shape
    rank = len(shape)
    heads_after = (*range(rank - 3), rank - 2, rank - 3, rank - 1)
    if (
        not builder.options.use_onednn
        or builder.is_like_output(name)
        or not any(
            node.operator == "Transpose" and node.attributes.get("perm") == heads_after
            for node in builder.readers(name)
        )
    ):
        return None
    dense = dense_strides([shape[axis] for axis in heads_after])
    strides = [dense[heads_after.index(axis)] for axis in range(rank)]
    return MemoryDesc(list(shape), "float32", strides)
