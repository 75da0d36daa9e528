"""Emits Conv and ConvTranspose; the primitive chooses every layout, weights are packed into it."""

from dataclasses import replace
from math import prod

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.halves import pays
from tightship.engine.lower.onednn.merged_groups import merged, merges
from tightship.engine.lower.onednn.parameters import parameter
from tightship.engine.lower.onednn.post_ops import Epilogue, with_epilogue
from tightship.engine.lower.onednn.scaled import scaled
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.half_weights import half_weights
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.window import transposed_window_of, turned_axes, window_of
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node

WEIGHTS, BIAS = 33, 41


def convolution(builder: Builder, node: Node) -> None:
    """Emit a convolution with its fused nodes; groups are merged if weights are constant.

    Weights of float16 are used as float32, because kernels of halves and the conversions before
    them take up to 1.9 times as long (measured with AVX512-FP16).
    """
    require(len(builder.value(node.inputs[0]).static_shape) in (3, 4, 5))
    if _rounds(builder, node) and _emit(builder, node, DType.BFLOAT16):
        return
    half = half_weights(builder, node)
    if half is not None and half[1] is DType.BFLOAT16:
        name, dtype = half
        narrow = replace(node, inputs=(node.inputs[0], name, *node.inputs[2:]))
        if _emit(builder, narrow, dtype):
            return
    if builder.options.multiplies_narrow(node) and _emit(builder, node, DType.BFLOAT16):
        return
    if not _emit(builder, node):
        require(builder.constant(node.inputs[1]) is not None)
        require(any(_emit(builder, merged(builder, node, count)) for count in merges(node)))


def _rounds(builder: Builder, node: Node) -> bool:
    """Whether rounding a computed image and weights to bfloat16 pays."""
    filters, channels, *kernel = builder.value(node.inputs[1]).static_shape
    is_plain = builder.constant(node.inputs[1]) is None and node.operator == "Conv"
    return is_plain and pays(builder, filters, channels * prod(kernel))


def _emit(builder: Builder, node: Node, dtype: DType = DType.FLOAT32) -> bool:
    convolved = _Convolution(builder, node, dtype)
    for source, target in builder.image_layouts(convolved.source_shape, convolved.target_shape):
        plain = convolved.describe(source, target, Epilogue())
        if plain is not None:
            break
    else:
        return False
    layout = plain.operand(DST)
    chosen = plain, Epilogue()
    if node.fused:
        try:
            chosen = with_epilogue(
                builder, node, layout, lambda extra: convolved.describe(source, layout, extra)
            )
        except NotCoveredError:
            return False
    convolved.emit(*chosen)
    return True


class _Convolution:
    """One convolution: describes its operands to oneDNN, with spatial axes turned if that helps."""

    def __init__(self, builder: Builder, node: Node, dtype: DType) -> None:
        self.builder, self.node, self.dtype = builder, node, dtype
        self.bias, self.scale = (*node.inputs[2:], "", "")[:2]
        source_shape = builder.value(node.inputs[0]).static_shape
        target_shape = builder.value(node.outputs[0]).static_shape
        self.transposed = node.operator == "ConvTranspose"
        kernel = builder.value(node.inputs[1]).static_shape[2:]
        before, after = source_shape[2:], target_shape[2:]
        window = (
            transposed_window_of(node, kernel, before, after)
            if self.transposed
            else window_of(node, kernel, before, after)
        )
        self.axes = turned_axes(window, before, after)
        self.window = window.turned(self.axes)
        self.source_shape = self._turned(source_shape)
        self.target_shape = self._turned(target_shape)
        self.weights = self._weights()

    def _turned(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:2], *(shape[2 + axis] for axis in self.axes))

    def _weights(self) -> MemoryDesc:
        """Describe the weights' own bytes: [groups,] outputs, inputs, kernel.

        A transposed convolution stores its inputs before its outputs.
        """
        first, second, *kernel = self.builder.value(self.node.inputs[1]).static_shape
        groups = self.node.integer("group", 1)
        dims = [groups, first // groups, second, *kernel]
        strides = dense_strides(dims)
        if self.transposed:
            dims[1:3], strides[1:3] = dims[2:0:-1], strides[2:0:-1]
        dims[3:], strides[3:] = ([each[3 + axis] for axis in self.axes] for each in (dims, strides))
        alone = int(groups == 1)
        stored = self.builder.value(self.node.inputs[1]).dtype
        assert stored is not None
        return MemoryDesc(dims[alone:], stored.value, strides[alone:])

    def describe(
        self, source: MemoryDesc, destination: MemoryDesc, extra: Epilogue
    ) -> PrimitiveDesc | None:
        """Describe the primitive with the layout of weights that it prefers.

        The layout in which another program packed them is used if the same implementation accepts
        it.
        """
        if self.dtype is not DType.FLOAT32:
            source = MemoryDesc.any(source.dims, self.dtype.value)
        free = MemoryDesc.any(self.weights.dims, self.dtype.value)
        best = self._described([source, free, destination], extra)
        packed = self.builder.packed_layout(self.node.inputs[1], self.weights.dims)
        if best is None or packed is None or packed == best.operand(WEIGHTS):
            return best
        other = self._described([source, packed, destination], extra)
        return other if other and other.implementation == best.implementation else best

    def _described(self, operands: list[MemoryDesc], extra: Epilogue) -> PrimitiveDesc | None:
        """Describe the primitive, once for all equal convolutions."""
        source, weights, destination = operands
        bias = MemoryDesc([self.target_shape[1]]) if self.bias else None
        parts = self.window.parts
        key = ("convolution", *operands, bias, *map(tuple, parts), self.transposed, extra.key)
        return self.builder.described(
            key,
            lambda: fast(
                lambda: PrimitiveDesc.convolution(
                    [source, weights, bias, destination],
                    parts,
                    transposed=self.transposed,
                    attributes=extra.attributes,
                )
            ),
        )

    def emit(self, desc: PrimitiveDesc, extra: Epilogue) -> None:
        builder, node = self.builder, self.node
        reads: list[tuple[int, Operand]] = [
            (SRC, builder.in_layout(node.inputs[0], desc.operand(SRC))),
            (WEIGHTS, self._packed(desc.operand(WEIGHTS))),
        ]
        if self.bias:
            bias = MemoryDesc([self.target_shape[1]])
            reads.append((BIAS, parameter(builder, self.bias, bias, bias)))
        reads.extend(extra.bound(builder))
        layout = desc.operand(DST)
        shape = builder.value(node.writes[0]).static_shape
        target = builder.output(node.writes[0], layout.reshaped(list(shape))).under(layout)
        builder.primitive(node, desc, reads, [target], extra.share)

    def _packed(self, desc: MemoryDesc) -> Operand:
        """Return the weights in a layout, multiplied in each run by a scale if there is one."""
        builder, name = self.builder, self.node.inputs[1]
        packed = parameter(builder, name, self.weights, desc)
        return scaled(builder, self.node, packed, self.scale) if self.scale else packed
