"""Conversion between real and quantized numbers: x = (q - zero point) * scale."""

import numpy as np

from tightship.engine.kernels.blocks import BLOCK_ELEMENTS, blocks
from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require
from tightship.engine.kernels.numbers import finite_range, is_narrow_float, is_real
from tightship.engine.kernels.scratch import ScratchLayout
from tightship.graph import element_count

INTEGERS = frozenset(
    ("int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32")
)


class Grid:
    """View of the tensor in which each scale and zero point broadcasts over its part."""

    def __init__(self, context: KernelContext) -> None:
        shape, parameters = context.shape(0), context.shape(1)
        self.shape: tuple[int, ...] = shape
        self.parameters: tuple[int, ...] = (1,) * len(shape)
        if element_count(parameters) == 1 and not context.integer("block_size", 0):
            return
        axis = axis_of(context.integer("axis", 1), len(shape))
        if len(parameters) == 1:
            self.parameters = tuple(d if a == axis else 1 for a, d in enumerate(shape))
            return
        block = context.integer("block_size", 0)
        require(block > 0 and parameters[axis] * block == shape[axis])
        self.shape = (*shape[:axis], parameters[axis], block, *shape[axis + 1 :])
        self.parameters = (*parameters[: axis + 1], 1, *parameters[axis + 1 :])

    def spread(self, parameter: Array) -> Array:
        """Broadcast a parameter to the tensor's shape."""
        return np.broadcast_to(parameter.reshape(self.parameters), self.shape)


def dequantize(context: KernelContext) -> Kernel:
    source, target = context.dtype(0), context.output_dtype()
    is_integral = source.name in INTEGERS
    require(target == np.float32 or (target == np.float16 and source.itemsize == 1))
    require(
        context.dtype(1) in (np.float32, np.float16) and (is_integral or is_narrow_float(source))
    )
    grid = Grid(context)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        out = outputs[0].reshape(grid.shape)
        np.copyto(out, inputs[0].reshape(grid.shape), casting="unsafe")
        if is_integral and len(inputs) > 2 and inputs[2] is not None:
            zero = grid.spread(inputs[2])
            np.subtract(out, zero, out=out, dtype=out.dtype, casting="unsafe")
        np.multiply(out, grid.spread(inputs[1]), out=out, casting="unsafe")

    return Kernel("DequantizeLinear", run)


def quantize_linear(context: KernelContext) -> Kernel:
    """Round to even and saturate; float8 does not saturate if the node says so."""
    source, target = context.dtype(0), context.output_dtype()
    is_integral = target.name in INTEGERS and target.name != "int32"
    require(is_integral or is_narrow_float(target))
    require(source == context.dtype(1) and (source == np.float32 or _fits_half(source, target)))
    require(not context.integer("precision", 0))
    saturates = is_integral or bool(context.integer("saturate", 1))
    low, high = finite_range(target)
    grid = Grid(context)
    layout = ScratchLayout()
    work = layout.slot(source, (min(BLOCK_ELEMENTS, element_count(grid.shape)),))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, out = inputs[0].reshape(grid.shape), outputs[0].reshape(grid.shape)
        scale = grid.spread(inputs[1])
        zero = grid.spread(inputs[2]) if len(inputs) > 2 and inputs[2] is not None else None
        for index in blocks(grid.shape):
            part = x[index]
            real = work.of(scratch)[: part.size].reshape(part.shape)
            np.divide(part, scale[index], out=real)
            if is_integral:
                np.rint(real, out=real)
                if zero is not None:
                    np.add(real, zero[index], out=real, dtype=real.dtype, casting="unsafe")
            if saturates:
                np.clip(real, low, high, out=real)
            np.copyto(out[index], real, casting="unsafe")

    return Kernel("QuantizeLinear", run, layout.size_bytes)


def _fits_half(source: np.dtype[np.generic], target: np.dtype[np.generic]) -> bool:
    """Whether float16 holds every element of the target."""
    return is_real(source) and source.itemsize == 2 and target.itemsize == 1


def dynamic_quantize(context: KernelContext) -> Kernel:
    """Quantize to uint8, by the range of the tensor."""
    shape = context.shape(0)
    require(context.dtype(0) == np.float32)
    layout = ScratchLayout()
    work = layout.slot(np.float32, (min(BLOCK_ELEMENTS, element_count(shape)),))

    def run(inputs: Operands, outputs: Operands, scratch: Array | None) -> None:
        x, (out, scale, zero) = inputs[0], outputs
        least = np.minimum.reduce(x, axis=None, initial=np.float32(0))
        greatest = np.maximum.reduce(x, axis=None, initial=np.float32(0))
        step = np.float32((greatest - least) / np.float32(255)) or np.float32(1)
        origin = np.clip(np.rint(-least / step), 0, 255)
        scale[...], zero[...] = step, origin
        for index in blocks(shape):
            part = x[index]
            real = work.of(scratch)[: part.size].reshape(part.shape)
            np.divide(part, step, out=real)
            np.rint(real, out=real)
            np.add(real, origin, out=real)
            np.clip(real, 0, 255, out=real)
            np.copyto(out[index], real, casting="unsafe")

    return Kernel("DynamicQuantizeLinear", run, layout.size_bytes)
