"""Native operators on arrays whose shapes only the run knows, made from nodes."""

from collections.abc import Callable

import numpy as np

from tightship._core import SizedOperator, element_type
from tightship.engine.kernels.sized.choice import choice
from tightship.engine.kernels.sized.elementwise import BROADCAST_VERSION, CASTS
from tightship.engine.kernels.sized.indexing import reduction_name
from tightship.engine.kernels.sized.regions import settings_of
from tightship.engine.kernels.softmax import ONE_AXIS_VERSION
from tightship.graph import Inline, Node
from tightship.graph.operators import body, row_of

PLAIN = "elementwise.elementwise"
"""Emitter of operators that the core's elementwise kernels have by name, without parameters."""
OPERANDS_VERSION = 10
"""First opset whose Slice and TopK have operands instead of attributes."""
LIMITS_VERSION = 11
"""First opset whose Clip has operands instead of attributes."""

Make = Callable[[Node], SizedOperator | None]


def sized_operator(node: Node) -> SizedOperator | None:
    """Make the native operator of a node; None if there is none.

    It leaves operands that it does not cover to the node's other kernel.
    """
    if node.domain or node.fused:
        return None
    if row_of(node).native == PLAIN:
        broadcasts = len(node.inputs) == 1 or node.version >= BROADCAST_VERSION
        return SizedOperator.of(node.operator) if broadcasts else None
    make: Make | None = body("sized", node.operator)
    return None if make is None else make(node)


def _integers(node: Node, name: str) -> tuple[int, ...]:
    value = node.attributes.get(name, ())
    return tuple(map(int, value)) if isinstance(value, tuple) else ()


def plain(node: Node) -> SizedOperator | None:
    return SizedOperator.of(node.operator)


def with_axis(default: str) -> Make:
    """Make an operator whose setting is its axis."""
    return lambda node: SizedOperator.of(node.operator, (node.integer("axis", int(default)),))


def with_axes(node: Node) -> SizedOperator | None:
    return SizedOperator.of(node.operator, _integers(node, "axes"))


def reshape(node: Node) -> SizedOperator | None:
    return SizedOperator.of("Reshape", (node.integer("allowzero", 0), *_integers(node, "shape")))


def transpose(node: Node) -> SizedOperator | None:
    return SizedOperator.of("Transpose", _integers(node, "perm"))


def split(node: Node) -> SizedOperator | None:
    return SizedOperator.of("Split", (node.integer("axis", 0), *_integers(node, "split")))


def take_slice(node: Node) -> SizedOperator | None:
    return plain(node) if node.version >= OPERANDS_VERSION else None


def clip(node: Node) -> SizedOperator | None:
    return plain(node) if node.version >= LIMITS_VERSION else None


def tile(node: Node) -> SizedOperator | None:
    return plain(node) if node.version >= BROADCAST_VERSION - 1 else None


def shape(node: Node) -> SizedOperator | None:
    return SizedOperator.of("Shape", (node.integer("start", 0), node.integer("end", 1 << 32)))


def filled(node: Node) -> SizedOperator | None:
    value = node.attributes.get("value")
    if value is not None and not isinstance(value, Inline):
        return None
    element = value.array().reshape(-1)[0] if isinstance(value, Inline) else np.float32(0)
    kind = element_type(element.dtype.name)
    if kind < 0:
        return None
    bits = int.from_bytes(element.tobytes().ljust(8, b"\0"), "little", signed=True)
    return SizedOperator.of("ConstantOfShape", (kind, bits))


def cast(node: Node) -> SizedOperator | None:
    dtype = CASTS.get(node.integer("to", 0))
    if dtype is None:
        return None
    return SizedOperator.of("Cast", (element_type(np.dtype(dtype).name),))


def tuples(node: Node) -> SizedOperator | None:
    return SizedOperator.of(node.operator, (node.integer("batch_dims", 0),))


def scatter(node: Node) -> SizedOperator | None:
    name = reduction_name(node)
    if name not in REDUCTIONS:
        return None
    first = node.integer("axis", 0) if node.operator == "ScatterElements" else 0
    return SizedOperator.of(node.operator, (first, REDUCTIONS.index(name)))


REDUCTIONS = ("none", "add", "mul", "max", "min")
"""Ways to combine an update with an element, by their number."""


def reduction(node: Node) -> SizedOperator | None:
    keeps, skips = node.integer("keepdims", 1), node.integer("noop_with_empty_axes", 0)
    return SizedOperator.of(node.operator, (keeps, skips, *_integers(node, "axes")))


def softmax(node: Node) -> SizedOperator | None:
    if node.version < ONE_AXIS_VERSION:
        return None
    is_logarithm = int(node.operator == "LogSoftmax")
    return SizedOperator.of("Softmax", (node.integer("axis", -1), is_logarithm))


def position(node: Node) -> SizedOperator | None:
    is_largest = int(node.operator == "ArgMax")
    return SizedOperator.of("Position", (
        node.integer("axis", 0), node.integer("keepdims", 1), is_largest,
        node.integer("select_last_index", 0),
    ))  # fmt: skip


def top_k(node: Node) -> SizedOperator | None:
    if node.version < OPERANDS_VERSION or len(node.writes) != 2:
        return None
    return SizedOperator.of("TopK", (node.integer("axis", -1), node.integer("largest", 1)))


def align(node: Node) -> SizedOperator | None:
    (rows, columns), samples, scale, is_half_pixel, is_largest = settings_of(node)
    integers = (rows, columns, samples, int(is_half_pixel), int(is_largest))
    return SizedOperator.of("RoiAlign", integers, (scale,))


def if_operator(node: Node) -> SizedOperator | None:
    """Make an If whose branches have operators for all of their nodes."""
    return choice(node, sized_operator)


def suppression(node: Node) -> SizedOperator | None:
    return SizedOperator.of("NonMaxSuppression", (node.integer("center_point_box", 0),))


def gemm(node: Node) -> SizedOperator | None:
    if node.integer("transA", 0) or node.version < BROADCAST_VERSION:
        return None
    numbers = node.number("alpha", 1.0), node.number("beta", 1.0)
    return SizedOperator.of("Gemm", (node.integer("transB", 0),), numbers)


def convolution(node: Node) -> SizedOperator | None:
    """Make a convolution of images, of stride 1; transposed, of a stride equal to the kernel."""
    strides, dilations = (_integers(node, name) or (1, 1) for name in ("strides", "dilations"))
    pads = _integers(node, "pads") or (0,) * 4
    is_padded = node.attributes.get("auto_pad", "NOTSET") not in ("NOTSET", b"NOTSET")
    if is_padded or node.integer("group", 1) != 1:
        return None
    if (len(strides), len(dilations), len(pads)) != (2, 2, 4):
        return None
    if node.operator == "Conv":
        return SizedOperator.of("Conv", (*dilations, *pads)) if strides == (1, 1) else None
    changed = any(_integers(node, name) for name in ("output_padding", "output_shape"))
    if changed or any(pads) or dilations != (1, 1):
        return None
    return SizedOperator.of("ConvTranspose", strides)
