"""Emits Attention over operands in their own layouts: heads may be strided, keys transposed."""

from dataclasses import dataclass
from functools import partial

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.strides import byte_strides, plain
from tightship.engine.program.program import Operand
from tightship.graph import Node


def attention(builder: Builder, node: Node) -> None:
    """Emit one kernel; its result has heads side by side if a Transpose that follows wants that.

    The inputs are queries, keys, values, and optionally a mask, the number of keys in use and a
    sink for each head. Keys and values may be as caches store them, which the kernel widens.
    """
    attributes = node.attributes
    given = [plain(builder, name) if name else None for name in node.inputs]
    query, key, value, mask, lengths, sinks = (*given, None, None, None)[:6]
    assert query is not None
    assert key is not None
    assert value is not None
    *outer, queries, width = builder.value(node.outputs[0]).static_shape
    laid_key, laid_value = _Laid.of(key, node, "key_order"), _Laid.of(value, node, "value_order")
    keys = laid_value.shape[-2]
    heads = _Heads(tuple(outer), _groups(tuple(outer), [laid_key, laid_value]))
    target = builder.output(node.outputs[0], _layout(builder, node))
    strides = [heads.strides(each) for each in (_Laid.of(query), laid_key, laid_value)]
    if attributes["keys_turned"]:
        strides[1][-2:] = reversed(strides[1][-2:])
    if mask is not None:
        each = heads.strides(_Laid.of(mask))
        strides.append([*each[:-2], *_repeated(mask, each[-2:], (queries, keys))])
    if lengths is not None:
        strides.append(heads.strides_over(lengths, 0))
    if sinks is not None:
        strides.append(heads.strides_over(sinks, len(outer) - 1))
    strides.append(heads.strides(_Laid.of(target)))
    sizes = (queries, keys, query.shape[-1], width)
    kernel = partial(
        NativeKernel.attention, outer=heads.outer, sizes=sizes, rule=_rule(node), strides=strides,
        key_type=key.dtype.value, value_type=value.dtype.value,
    )  # fmt: skip
    reads = [operand for operand in given if operand is not None]
    builder.native(node, ("attention", kernel), reads, [target])


def _rule(node: Node) -> NativeKernel.AttentionRule:
    attributes = node.attributes
    return NativeKernel.AttentionRule(
        node.number("scale", 0.0),
        str(attributes["mask"]),
        node.number("fill", 0.0),
        ahead=node.integer("ahead", -1),
        behind=node.integer("behind", -1),
        first=node.integer("first", 0),
        cap=node.number("cap", 0.0),
        counted=len(node.inputs) > 4 and bool(node.inputs[4]),
        sinks=len(node.inputs) > 5,
        zero_if_undefined=bool(attributes["zero_if_undefined"]),
        zero_if_unseen=bool(attributes["zero_if_unseen"]),
    )


@dataclass(frozen=True, slots=True)
class _Laid:
    """Shape of an operand and its strides in bytes, by axis."""

    shape: tuple[int, ...]
    strides: list[int]

    @staticmethod
    def of(operand: Operand, node: Node | None = None, order: str = "") -> "_Laid":
        """Return those of an operand, its axes in the order that an attribute gives."""
        axes = node.attributes.get(order) if node is not None else None
        shape, strides = tuple(operand.shape), byte_strides(operand)
        if not isinstance(axes, tuple):
            return _Laid(shape, strides)
        places = [int(str(axis)) for axis in axes]
        return _Laid(tuple(shape[axis] for axis in places), [strides[axis] for axis in places])


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

    def strides(self, operand: _Laid) -> list[int]:
        """Return the byte strides of an operand over these axes and its own last two."""
        missing = len(self.shape) + 2 - len(operand.shape)
        own = [0] * missing + operand.strides
        lengths = [1] * missing + list(operand.shape)
        kept = self._split(own[:-2], lengths[:-2])
        return [*kept, *own[-2:]]

    def strides_over(self, operand: Operand, axis: int) -> list[int]:
        """Return the byte strides of a vector along one of these axes; one number is for all."""
        (length,) = operand.shape
        lengths, own = [1] * len(self.shape), [0] * len(self.shape)
        if length > 1:
            lengths[axis], own[axis] = length, byte_strides(operand)[0]
        return self._split(own, lengths)

    def _split(self, own: list[int], lengths: list[int]) -> list[int]:
        kept = [0 if length == 1 else stride for stride, length in zip(own, lengths, strict=True)]
        if self.groups > 1:
            last = kept.pop()
            is_shared = lengths[-1] != self.shape[-1]
            kept += [last, 0] if is_shared else [last * self.groups, last]
        return kept


def _groups(outer: tuple[int, ...], operands: list[_Laid]) -> int:
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
