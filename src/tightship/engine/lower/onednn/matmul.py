"""Emits MatMul and Gemm; constant matrices are packed, and leading axes flattened for them."""

from contextlib import suppress
from copy import copy
from dataclasses import replace

from tightship._core import MemoryDesc, PrimitiveDesc, onednn_cpu_isa
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.onednn import halves
from tightship.engine.lower.onednn.choose import fast, first_fast
from tightship.engine.lower.onednn.post_ops import Destination, Epilogue, epilogue, with_epilogue
from tightship.engine.lower.onednn.transposed import transposed_product
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.fused_nodes import take_bias
from tightship.engine.lower.steps.half_weights import half_weights
from tightship.engine.lower.steps.layouts import AVX512, dense_strides, row_major
from tightship.graph import DType, Node, element_count

WEIGHTS, BIAS = 33, 41
PADDING_MAX = 1.25
"""Largest ratio of a packed matrix's size to that of its elements."""


def matmul(builder: Builder, node: Node) -> None:
    """Emit MatMul; by a single matrix it is one product of two matrices, whatever the rank."""
    left, right = (builder.value(name).static_shape for name in node.inputs)
    require(len(left) >= 2 and len(right) >= 2)
    is_constant = builder.constant(node.inputs[1]) is not None
    source = [element_count(left[:-1]), left[-1]]
    rounds = halves.pays(builder, *source, right[-1])
    if len(right) == 2 and (is_constant or len(left) > 2 or rounds):
        if is_constant:
            product = _by_constant(source, MemoryDesc(list(right)), "")
        else:
            product = _Product(source, _matrix_layout(builder, node.inputs[1]), right[1], "")
            product.is_constant = False
            if rounds and _by_rounded(builder, node, product):
                return
        _by_matrix(builder, node, product)
    else:
        _batched(builder, node, left, right)


def gemm(builder: Builder, node: Node) -> None:
    """Emit Gemm with alpha and beta one by a constant matrix, or of a transposed computed one."""
    attributes = node.attributes
    is_computed = builder.constant(node.inputs[1]) is None and bool(attributes.get("transB", 0))
    is_turned = attributes.get("transA", 0) or is_computed
    if is_turned and len(node.inputs) == 2 and not node.fused:
        transposed_product(builder, node)
        return
    require(attributes.get("alpha", 1.0) == 1.0 and attributes.get("beta", 1.0) == 1.0)
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    require(builder.constant(node.inputs[1]) is not None and not attributes.get("transA", 0))
    shape = builder.value(node.inputs[1]).static_shape
    depth, columns = shape[::-1] if attributes.get("transB", 0) else shape
    if bias:
        require(covered(builder.constant(bias)).shape in ((columns,), (1, columns)))
    strides = [1, depth] if attributes.get("transB", 0) else [columns, 1]
    weights = MemoryDesc([depth, columns], "float32", strides)
    rows = builder.value(node.inputs[0]).static_shape[0]
    _by_matrix(builder, node, _by_constant([rows, depth], weights, bias))


class _Product:
    """Product of rows and a matrix, with an optional constant bias; a constant matrix is packed."""

    is_constant = True
    is_inner = False
    """Whether it is an inner product for oneDNN, whose matrix has the axis of columns first."""
    dtype = DType.FLOAT32
    """Element type of the operands; sums are float32."""

    def __init__(self, source: list[int], weights: MemoryDesc, columns: int, bias: str) -> None:
        self.source, self.weights, self.columns, self.bias = source, weights, columns, bias

    def describe(self, builder: Builder, extra: Epilogue, name: str) -> PrimitiveDesc | None:
        """Describe the primitive with the layout that it prefers, unless that pads too much.

        The layout in which another program packed the matrix `name` is used if possible.
        """
        packed = builder.packed_layout(name, self.weights.dims) if self.is_constant else None
        key = (
            "matmul", self.dtype, self.is_constant, self.is_inner, *self.source, self.weights,
            bool(self.bias), extra.key, packed,
        )  # fmt: skip
        return builder.described(key, lambda: self._chosen(packed, extra))

    def _chosen(self, packed: MemoryDesc | None, extra: Epilogue) -> PrimitiveDesc | None:
        if not self.is_constant:
            is_whole = self.dtype is DType.FLOAT32
            return self._describe(self.weights if is_whole else halves.rounded(self.weights), extra)
        desc = None if packed is None else self._describe(packed, extra)
        if desc is None:
            desc = self._describe(MemoryDesc.any(self.weights.dims, self.dtype.value), extra)
        if (
            desc is None
            or desc.operand(WEIGHTS).size_bytes <= PADDING_MAX * self.weights.size_bytes
        ):
            return desc
        return self._describe(MemoryDesc(self.weights.dims, self.dtype.value), extra) or desc

    def _describe(self, weights: MemoryDesc, extra: Epilogue) -> PrimitiveDesc | None:
        operands = [
            MemoryDesc(self.source, self.dtype.value),
            weights,
            self.bias_layout if self.bias else None,
            MemoryDesc([self.source[0], self.columns]),
        ]
        create = PrimitiveDesc.inner_product if self.is_inner else PrimitiveDesc.matmul
        return fast(lambda: create(operands, extra.attributes))

    @property
    def bias_layout(self) -> MemoryDesc:
        """Layout of the bias."""
        return MemoryDesc([self.columns] if self.is_inner else [1, self.columns])


def _by_constant(source: list[int], weights: MemoryDesc, bias: str) -> _Product:
    """Return a product by a constant matrix, whose layout is that of its own bytes.

    Without AVX-512 oneDNN has fast kernels for inner products alone.
    """
    columns = weights.dims[1]
    if onednn_cpu_isa() & AVX512:
        return _Product(source, weights, columns, bias)
    turned = MemoryDesc(weights.dims[::-1], "float32", weights.strides[::-1])
    product = _Product(source, turned, columns, bias)
    product.is_inner = True
    return product


def _by_matrix(builder: Builder, node: Node, product: _Product) -> None:
    half = half_weights(builder, node)
    if builder.options.multiplies_narrow(node) and not product.is_inner:
        narrow = copy(product)
        narrow.dtype = DType.BFLOAT16
        with suppress(NotCoveredError):
            _emit(builder, node, narrow)
            return
    if half is not None:
        name, dtype = half
        narrow = copy(product)
        stored = product.weights
        narrow.weights = MemoryDesc(stored.dims, dtype.value, stored.strides)
        narrow.dtype = dtype
        with suppress(NotCoveredError):
            _emit(builder, replace(node, inputs=(node.inputs[0], name, *node.inputs[2:])), narrow)
            return
    _emit(builder, node, product)


def _emit(builder: Builder, node: Node, product: _Product) -> None:
    if not product.bias:
        node, product.bias = take_bias(builder, node, product.columns)
    layout = builder.row_major((product.source[0], product.columns))
    matrix = node.inputs[1]
    desc, extra = with_epilogue(
        builder, node, layout, lambda extra: product.describe(builder, extra, matrix)
    )
    packed = desc.operand(WEIGHTS)
    reads = [
        (SRC, builder.in_layout(node.inputs[0], desc.operand(SRC))),
        (
            WEIGHTS,
            builder.weight(node.inputs[1], product.weights, packed)
            if product.is_constant
            else halves.operand(builder, node.inputs[1], product.weights)
            if product.dtype is halves.HALF
            else builder.in_layout(node.inputs[1], packed),
        ),
    ]
    if product.bias:
        row = product.bias_layout
        reads.append((BIAS, builder.weight(product.bias, row, row)))
    reads.extend(extra.bound(builder))
    target = builder.output_as(node.writes[0], layout)
    builder.primitive(node, desc, reads, [target], extra.share)


def _by_rounded(builder: Builder, node: Node, product: _Product) -> bool:
    """Emit a product of rounded operands, if there is a kernel; a large weight is rounded in parts.

    Raises:
        NotCoveredError: Something is fused into a product in parts; it can follow it instead.
    """
    with suppress(NotCoveredError):
        if not halves.has_parts(builder, node.inputs[1]):
            narrow = copy(product)
            narrow.dtype = halves.HALF
            _emit(builder, node, narrow)
            return True
        if not node.fused:
            target = row_major((product.source[0], product.columns))
            halves.by_weight(builder, node, product.weights, target)
            return True
    require(not (node.fused and halves.has_parts(builder, node.inputs[1])))
    return False


def _batched(builder: Builder, node: Node, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Emit a product of two stacks of matrices; the right one may be read transposed."""
    rank = max(len(left), len(right))
    require(len(left) == len(right) == rank <= 5)
    target_shape = builder.value(node.outputs[0]).static_shape
    destination = Destination(MemoryDesc(list(target_shape)), target_shape)
    extra = epilogue(builder, node, destination)
    source, weights = row_major(left), _matrix_layout(builder, node.inputs[1])
    pairs = [(source, weights)]
    if halves.pays(builder, *left[-2:], right[-1]):
        pairs.insert(0, (halves.rounded(source), halves.rounded(weights)))
    (source, weights), desc = first_fast(
        pairs,
        lambda pair: PrimitiveDesc.matmul([*pair, None, destination.desc], extra.attributes),
    )
    reads = [
        (SRC, builder.in_layout(node.inputs[0], source)),
        (WEIGHTS, builder.in_layout(node.inputs[1], weights)),
        *extra.bound(builder),
    ]
    builder.primitive(node, desc, reads, [builder.output(node.writes[0], desc.operand(DST))])


def _matrix_layout(builder: Builder, name: str) -> MemoryDesc:
    """Return a stack's own layout if dense up to a swap of its last two axes, else a dense one."""
    operand = builder.home(name)
    shape = operand.shape
    strides = dense_strides([*shape[:-2], shape[-1], shape[-2]])
    transposed = [*strides[:-2], strides[-1], strides[-2]]
    if operand.desc is not None and operand.desc.is_plain and operand.desc.strides == transposed:
        return operand.desc
    return row_major(shape)
