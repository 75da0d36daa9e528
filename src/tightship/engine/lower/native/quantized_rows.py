"""Emits quantized products of single pixels, with sums."""

from tightship._core import NativeKernel
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import channels_last
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node, element_count


def quantized_rows(builder: Builder, node: Node) -> None:
    """Emit the kernel; images have channels last, and the result may replace the addend."""
    image, *constants = node.inputs[:4]
    source = _image(builder, image)
    reads = [source, *map(builder.dense, constants)]
    addends = [_image(builder, name) for name in node.inputs[4:]]
    result = builder.value(node.outputs[0])
    assert result.dtype is not None
    shape, channels = result.static_shape, source.shape[1]
    target = builder.output(node.outputs[0], channels_last(shape, result.dtype))
    low, high = _numbers(node, "result", 2)
    least, most = _numbers(node, "product", 2)
    factor, addend_factor, shift = _numbers(node, "numbers", 3)
    kernel = NativeKernel.quantized_rows(
        [element_count(shape) // shape[1], channels, shape[1]],
        (low, high),
        bool(addends),
        (least, most),
        (factor, addend_factor, shift),
        any(each.dtype is DType.INT8 for each in addends),
    )
    in_place = [(target, each) for each in addends]
    builder.native(
        node, ("quantized rows", kernel), [*reads, *addends], [target], in_place=in_place
    )


def _numbers(node: Node, name: str, count: int) -> tuple[float, ...]:
    """Return an attribute of so many numbers; zeros if the node does not set it."""
    found = node.attributes.get(name, (0.0,) * count)
    assert isinstance(found, tuple), node
    return tuple(float(each) for each in found)


def _image(builder: Builder, name: str) -> Operand:
    value = builder.value(name)
    assert value.dtype is not None
    return builder.in_layout(name, channels_last(value.static_shape, value.dtype))
