"""Emits QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear in the tensor's layout."""

from collections.abc import Callable, Sequence

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import alike, dense_strides
from tightship.engine.lower.steps.strides import byte_strides, plain
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node, element_count

Create = Callable[[str, Sequence[int], tuple[Sequence[int], ...], bool], NativeKernel]

QUANTIZED = frozenset({DType.INT8, DType.UINT8, DType.INT16, DType.UINT16})


def quantize(builder: Builder, node: Node) -> None:
    """Emit QuantizeLinear to 8 or 16 bits."""
    target = builder.value(node.outputs[0])
    require(target.dtype in QUANTIZED and not node.attributes.get("precision", 0))
    _emit(builder, node, target.dtype, NativeKernel.quantize)


def dequantize(builder: Builder, node: Node) -> None:
    """Emit DequantizeLinear to float32."""
    source = builder.value(node.inputs[0])
    require(source.dtype is DType.INT32 or source.dtype in QUANTIZED)
    _emit(builder, node, source.dtype, NativeKernel.dequantize)


def dynamic_quantize(builder: Builder, node: Node) -> None:
    """Emit DynamicQuantizeLinear to uint8, by the range of the tensor."""
    source = plain(builder, node.inputs[0])
    count = element_count(source.shape)
    require(source.dtype is DType.FLOAT32 and len(node.writes) == len(node.outputs))
    if source.size_bytes != source.dtype.itemsize * count:
        source = builder.dense(node.inputs[0])
    kernel = NativeKernel.dynamic_quantize(count)
    quantized, *parameters = node.outputs
    writes = [
        builder.output(quantized, alike(source, DType.UINT8)),
        *(builder.output(name) for name in parameters),
    ]
    builder.native(node, (node.operator, kernel), [source], writes)


def _emit(builder: Builder, node: Node, dtype: DType | None, create: Create) -> None:
    assert dtype is not None
    names = [name for name in node.inputs if name]
    real = (node.inputs[0], node.outputs[0])[node.operator == "DequantizeLinear"]
    types = {builder.value(name).dtype for name in (real, names[1])}
    shape, parameters = _split(builder, node)
    alike_parameters = len({element_count(builder.value(n).static_shape) for n in names[1:]}) == 1
    require(types == {DType.FLOAT32} and alike_parameters)
    source = plain(builder, names[0])
    keeps = len(shape) == len(source.shape)
    if not keeps:
        source = builder.dense(names[0])
    result = builder.value(node.outputs[0]).dtype
    assert result is not None
    target = builder.output(node.outputs[0], alike(source, result) if keeps else None)
    tensors = [_strides(operand, shape, keeps=keeps) for operand in (source, target)]
    scale, zero = ([step * item for step in parameters] for item in (4, dtype.itemsize))
    order = sorted(range(len(shape)), key=lambda axis: -tensors[0][axis])
    lengths, *strides = (
        [each[axis] for axis in order] for each in (shape, tensors[0], scale, zero, tensors[1])
    )
    kernel = create(dtype.value, lengths, tuple(strides), len(names) > 2)
    reads = [source, *(builder.dense(name) for name in names[1:])]
    builder.native(node, (node.operator, kernel), reads, [target])


def _split(builder: Builder, node: Node) -> tuple[list[int], list[int]]:
    """Return the tensor's shape, split into blocks if needed, and the parameters' strides in it."""
    shape = list(builder.value(node.inputs[0]).static_shape)
    scales = builder.value(node.inputs[1]).static_shape
    block = node.integer("block_size", 0)
    if element_count(scales) == 1 and not block:
        return shape, [0] * len(shape)
    axis = node.integer("axis", 1)
    require(-len(shape) <= axis < len(shape))
    axis %= len(shape)
    if len(scales) == 1 and scales[0] == shape[axis]:
        return shape, [int(each == axis) for each in range(len(shape))]
    require(len(scales) == len(shape) and block > 0 and scales[axis] * block == shape[axis])
    steps = dense_strides(scales)
    steps.insert(axis + 1, 0)
    return [*shape[:axis], scales[axis], block, *shape[axis + 1 :]], steps


def _strides(operand: Operand, shape: list[int], *, keeps: bool) -> list[int]:
    if keeps:
        return byte_strides(operand)
    return [step * operand.dtype.itemsize for step in dense_strides(shape)]
