"""Emits MatMulInteger: products of integers less their zero points, summed in int32."""

from collections.abc import Sequence
from dataclasses import dataclass

from tightship._core import Attributes, MemoryDesc, NativeKernel, PrimitiveDesc
from tightship.engine.kernels.kernel_context import covered, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.quantized import WEIGHTS, ZERO_POINTS
from tightship.engine.lower.passes.dequantized import NARROW, flipped, scalar
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.layouts import sums_saturate
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node, element_count

MIDDLE = 128
"""Offset that turns uint8 into int8."""


def matmul_integer(builder: Builder, node: Node) -> None:
    """Emit a product with one zero point for each operand; a uint8 right operand becomes int8."""
    require(not sums_saturate())  # NumPy's sums are exact
    product = _product(builder, node)
    attributes = Attributes()
    for argument, zero in product.zeros.items():
        if zero.name or zero.shift:
            attributes.zero_point(argument, 0)
    is_constant = builder.constant(node.inputs[1]) is not None
    weights = MemoryDesc.any(product.right, "int8")
    operands = [
        MemoryDesc(product.left, builder.home(node.inputs[0]).dtype.value),
        weights if is_constant else MemoryDesc(product.right, "int8"),
        None,
        MemoryDesc([*product.left[:-1], product.right[-1]], "int32"),
    ]
    desc = covered(fast(lambda: PrimitiveDesc.matmul(operands, attributes)))
    packed = desc.operand(WEIGHTS)
    reads = [
        (SRC, builder.in_layout(node.inputs[0], desc.operand(SRC))),
        (WEIGHTS, _right(builder, node, packed)),
        *(
            (ZERO_POINTS + argument, zero.operand(builder, node))
            for argument, zero in product.zeros.items()
            if zero.name or zero.shift
        ),
    ]
    target = builder.output_as(node.outputs[0], desc.operand(DST))
    builder.primitive(node, desc, reads, [target])


@dataclass(frozen=True, slots=True)
class Zero:
    """Zero point of integers that `shift` is subtracted from; an empty name means 0."""

    name: str
    shift: int

    def operand(self, builder: Builder, node: Node) -> Operand:
        """Return the zero point in int32, less the shift."""
        if not self.name:
            return _constant(builder, f"{node.name}.zero{self.shift}", -self.shift, DType.INT32)
        source = builder.dense(self.name)
        wide = builder.room(f"{node.name}.{self.name}.int32", MemoryDesc([1], "int32"))
        elementwise(builder, "Cast", [source], wide, (source.dtype.value, "int32"))
        if not self.shift:
            return wide
        shift = _constant(builder, f"int32.{self.shift}", self.shift, DType.INT32)
        moved = builder.room(f"{wide.name}.moved", MemoryDesc([1], "int32"))
        elementwise(builder, "Sub", [wide, shift], moved, ("int32",) * 3)
        return moved


@dataclass(frozen=True, slots=True)
class _Product:
    left: list[int]
    right: list[int]
    zeros: dict[int, Zero]
    """Zero points by `DNNL_ARG_*`."""


def _product(builder: Builder, node: Node) -> _Product:
    values = [builder.value(name) for name in node.inputs if name]
    left, right = (builder.value(name) for name in node.inputs[:2])
    require(all(value.is_static and value.dtype in NARROW for value in values))
    shapes = [list(left.static_shape), list(right.static_shape)]
    require(min(map(len, shapes)) >= 2 and 0 not in (*shapes[0], *shapes[1]))
    if len(shapes[1]) == 2:
        shapes[0] = [element_count(tuple(shapes[0][:-1])), shapes[0][-1]]
    else:
        require(shapes[0][:-2] == shapes[1][:-2] and len(shapes[1]) <= 5)
    names = (*node.inputs[2:], "", "")[:2]
    given = [builder.value(name).static_shape for name in names if name]
    require(all(element_count(shape) == 1 for shape in given))
    shift = MIDDLE if right.dtype is DType.UINT8 else 0
    zeros = {SRC: Zero(names[0], 0), WEIGHTS: Zero(names[1], shift)}
    return _Product(shapes[0], shapes[1], zeros)


def _right(builder: Builder, node: Node, desc: MemoryDesc) -> Operand:
    """Return the right operand as int8 in a layout."""
    name = node.inputs[1]
    stored = MemoryDesc(desc.dims, "int8")
    constant = builder.constant(name)
    is_narrow = builder.value(name).dtype is DType.INT8
    if constant is not None:
        if is_narrow:
            return builder.weight(name, stored, desc)
        builder.add_constant(f"{name}.int8", flipped(constant))
        return builder.weight(f"{name}.int8", stored, desc)
    if is_narrow:
        return builder.in_layout(name, desc)
    return flip(builder, name, f"{node.name}.{name}.int8", stored)


def flip(builder: Builder, name: str, result: str, desc: MemoryDesc) -> Operand:
    """Turn a dense uint8 value into int8 or the reverse, which moves its zero point by `MIDDLE`."""
    middle = _constant(builder, f"uint8.{MIDDLE}", MIDDLE, DType.UINT8)
    target = builder.room(result, desc)
    elementwise(builder, "BitwiseXor", [builder.dense(name), middle], target, ("uint8",) * 3)
    return target


def _constant(builder: Builder, name: str, value: int, dtype: DType) -> Operand:
    builder.add_constant(name, scalar(value, dtype))
    one = MemoryDesc([1], dtype.value)
    return builder.weight(name, one, one)


def elementwise(
    builder: Builder,
    name: str,
    sources: Sequence[Operand],
    target: Operand,
    types: tuple[str, ...],
    *,
    whole: int = 1,
) -> None:
    """Add a kernel over `whole` operands in the target's layout, then ones of single elements."""
    assert target.desc is not None
    count = target.desc.size_bytes // DType(types[-1]).itemsize
    items = [DType(each).itemsize for each in types]
    strides = [[item if index < whole else 0] for index, item in enumerate(items[:-1])]
    strides.append([items[-1]])
    kernel = NativeKernel.elementwise(name, types, [count], strides, ())
    assert kernel is not None
    node = Node(target.name, name, (), ())
    builder.native(node, (name, kernel), sources, [target])
