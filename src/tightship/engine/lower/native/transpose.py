"""Transpose, where it cannot be a view."""

from tightship._core import NativeKernel
from tightship.engine.lower.builder import Builder
from tightship.engine.lower.native.layout import byte_strides, plain
from tightship.graph import Node


def transpose(builder: Builder, node: Node) -> bool:
    """One copy from permuted strides."""
    source = plain(builder, node.inputs[0])
    permutation = node.attributes.get("perm", tuple(reversed(range(len(source.shape)))))
    assert isinstance(permutation, tuple)
    strides = byte_strides(source)
    permuted = [strides[int(axis)] for axis in permutation]
    target = builder.output(node.outputs[0])
    shape = list(target.shape)
    kernel = NativeKernel.copy(target.dtype.itemsize, shape, permuted, byte_strides(target))
    builder.native(node, ("copy", kernel), [source], [target])
    return True
