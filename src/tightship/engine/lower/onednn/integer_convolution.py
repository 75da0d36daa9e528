"""Emits ConvInteger with constant int8 weights."""

from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.onednn.choose import first_fast
from tightship.engine.lower.onednn.integer_product import MIDDLE, Zero, elementwise, flip
from tightship.engine.lower.onednn.merged_groups import merged, merges
from tightship.engine.lower.onednn.quantized import WEIGHTS, ZERO_POINTS
from tightship.engine.lower.onednn.quantized_convolution import stored_weights
from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.layouts import sums_saturate
from tightship.engine.lower.steps.window import window_of
from tightship.engine.program.program import Operand
from tightship.graph import Constant, Derived, DType, Node, element_count
from tightship.graph.constant import Array

HALF = 64
"""Largest weight of which two, each times 255, add up within 16 bits."""


def convolution_integer(builder: Builder, node: Node) -> None:
    """Emit sums in int32, with at most one zero point for the image and none for the weights.

    Where sums of two products saturate, the image becomes uint8 and the weights a sum of halves.
    """
    image, weights = (builder.value(name) for name in node.inputs[:2])
    before, after = image.static_shape, builder.value(node.outputs[0]).static_shape
    zero, weights_zero = (*node.inputs[2:], "", "")[:2]
    require(not weights_zero and weights.dtype is DType.INT8)
    covered(builder.constant(node.inputs[1]))
    if image.dtype not in NARROW or len(before) not in (3, 4, 5) or 0 in (*before, *after):
        raise NotCoveredError
    require(not zero or element_count(builder.value(zero).static_shape) == 1)
    is_flipped = sums_saturate() and image.dtype is DType.INT8
    _Convolution(builder, node, is_flipped, Zero(zero, -MIDDLE if is_flipped else 0)).emit()


@dataclass(frozen=True, slots=True)
class _Convolution:
    builder: Builder
    node: Node
    is_flipped: bool
    """Whether the image is turned from int8 into uint8."""
    zero: Zero

    def emit(self) -> None:
        builder, name = self.builder, self.node.outputs[0]
        wider = (merged(builder, self.node, count) for count in merges(self.node))
        node, desc = first_fast(chain([self.node], wider), self._described)
        plain = MemoryDesc(list(builder.value(name).static_shape), "int32")
        written = desc.operand(DST)
        sums = (
            builder.output_as(name, plain)
            if written == plain
            else builder.room(f"{name}.sums", written)
        )
        self._emit_sums(node, desc, sums)
        if written != plain:
            builder.reorder(sums, builder.output_as(name, plain))

    def _described(self, node: Node) -> PrimitiveDesc:
        value = self.builder.value
        image, weights = (value(name) for name in node.inputs[:2])
        after, stored = value(node.outputs[0]).static_shape, stored_weights(self.builder, node)
        window = window_of(node, weights.static_shape[2:], image.static_shape[2:], after[2:])
        attributes = Attributes()
        if self._has_zero:
            attributes.zero_point(SRC, 0)
        assert image.dtype is not None
        operands = [
            MemoryDesc.any(
                list(image.static_shape), "uint8" if self.is_flipped else image.dtype.value
            ),
            MemoryDesc.any(stored.dims, "int8"),
            None,
            MemoryDesc.any(list(after), "int32"),
        ]
        return PrimitiveDesc.convolution(
            operands, window.parts, transposed=False, attributes=attributes
        )

    @property
    def _has_zero(self) -> bool:
        return bool(self.zero.name or self.zero.shift)

    def _emit_sums(self, node: Node, desc: PrimitiveDesc, sums: Operand) -> None:
        """Write the sums of one convolution, or of one for each half of the weights."""
        builder, stored = self.builder, stored_weights(self.builder, node)
        reads = [(SRC, self._image(desc.operand(SRC)))]
        if self._has_zero:
            reads.append((ZERO_POINTS + SRC, self.zero.operand(builder, self.node)))
        terms = _halves(builder, node.inputs[1]) if sums_saturate() else [node.inputs[1]]
        written = [sums]
        if len(terms) > 1:
            names = [f"{self.node.outputs[0]}.half{index}" for index, _ in enumerate(terms)]
            written = [builder.room(name, desc.operand(DST)) for name in names]
        for term, target in zip(terms, written, strict=True):
            weights = builder.weight(term, stored, desc.operand(WEIGHTS))
            builder.primitive(node, desc, [*reads, (WEIGHTS, weights)], [target])
        if len(terms) > 1:
            elementwise(builder, "Add", written, sums, ("int32",) * 3, whole=2)

    def _image(self, desc: MemoryDesc) -> Operand:
        builder, name = self.builder, self.node.inputs[0]
        if not self.is_flipped:
            return builder.in_layout(name, desc)
        dense = flip(builder, name, f"{self.node.name}.uint8", MemoryDesc(desc.dims, "uint8"))
        if dense.desc == desc:
            return dense
        image = builder.room(f"{dense.name}.{desc.format}", desc)
        builder.reorder(dense, image)
        return image


def _halves(builder: Builder, name: str) -> list[str]:
    """Split int8 weights into two of at most 64 in magnitude."""
    weights = covered(builder.constant(name))
    names = [f"{name}.half{index}" for index in (0, 1)]
    for index, half in enumerate(names):
        constant = Derived(
            DType.INT8, weights.shape, partial(_half, weights, index), (weights,), ("half", index)
        )
        builder.add_constant(half, constant)
    return names


def _half(weights: Constant, index: int) -> Array:
    whole: NDArray[np.int8] = np.asarray(weights.array(), np.int8)
    first = np.clip(whole, -HALF, HALF)
    return whole - first if index else first
