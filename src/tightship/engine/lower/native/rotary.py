"""Rotary position embedding over operands as they lie."""

from tightship._core import NativeKernel
from tightship.engine.lower.builder import Builder
from tightship.engine.lower.native.layout import broadcast_strides, byte_strides, plain
from tightship.graph import Node


def rotary(builder: Builder, node: Node) -> bool:
    """Pairs are halves of the last axis, or neighbours on it; tables may hold one entry a pair."""
    source, *tables = (plain(builder, name) for name in node.inputs)
    target = builder.output(node.outputs[0])
    *outer, width = source.shape
    pairs = width // 2
    is_interleaved = bool(node.attributes["interleaved"])
    strides, partners = [], []
    for operand in (source, *tables, target):
        own = byte_strides(operand)
        is_whole = operand.shape[-1] == width
        apart = 1 if is_interleaved else pairs
        partners.append(apart * own[-1] if is_whole else 0)
        wide = broadcast_strides(operand, [*outer, operand.shape[-1]])
        wide[-1] = own[-1] * (2 if is_whole and is_interleaved else 1)
        strides.append(wide)
    kernel = NativeKernel.rotary([*outer, pairs], strides, partners)
    builder.native(node, ("rotary", kernel), [source, *tables], [target])
    return True


ROTARY = {("tightship", "Rotary"): rotary}
"""By domain and operator."""
