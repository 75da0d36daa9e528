"""Shapes of outputs from shapes of inputs, by operator; dimensions may be followed lengths."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightship.graph import Constant, Node
from tightship.graph.length import quotient

Shape = tuple[int, ...]
Elements = tuple[int, ...]


class NoRuleError(Exception):
    """Nothing is known of this operator, or of this form of it."""


@dataclass(frozen=True, slots=True)
class Site:
    """A node, the shapes of its inputs, and those whose elements are known, as flat tuples."""

    node: Node
    shapes: tuple[Shape | None, ...]
    elements: tuple[Elements | None, ...]
    constants: tuple[Constant | None, ...] = ()
    """Inputs that are known, where their elements are no integers."""

    def shape(self, index: int = 0) -> Shape:
        """Shape of an input that must be there."""
        found = self.shapes[index] if index < len(self.shapes) else None
        if found is None:
            raise NoRuleError
        return found

    def integer(self, name: str, default: int) -> int:
        """An attribute that is one integer."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, int):
            raise NoRuleError
        return value

    def integers(self, name: str, index: int = -1) -> tuple[int, ...] | None:
        """A list given as an attribute or, by newer opsets, as an input; None if absent."""
        value = self.node.attributes.get(name)
        if isinstance(value, tuple):
            return tuple(element for element in value if isinstance(element, int))
        if index < 0 or index >= len(self.node.inputs) or not self.node.inputs[index]:
            return None
        found = self.elements[index]
        if found is None:
            raise NoRuleError
        return found


Rule = Callable[[Site], list[Shape]]


def broadcast(*shapes: Shape) -> Shape:
    """The shape of an elementwise operation."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_common(lengths) for lengths in zip(*padded, strict=True))


def _common(lengths: Sequence[int]) -> int:
    found = 1
    for length in lengths:
        if found == 1:
            found = length
        elif length not in (1, found):
            raise NoRuleError
    return found


def _same(site: Site) -> list[Shape]:
    return [site.shape()]


def _elementwise(site: Site) -> list[Shape]:
    return [broadcast(*(site.shape(index) for index in range(len(site.node.inputs))))]


def _matmul(site: Site) -> list[Shape]:
    left, right = site.shape(0), site.shape(1)
    if len(left) < 2 or len(right) < 2 or left[-1] != right[-2]:
        raise NoRuleError
    return [(*broadcast(left[:-2], right[:-2]), left[-2], right[-1])]


def _gemm(site: Site) -> list[Shape]:
    left, right = site.shape(0), site.shape(1)
    if site.integer("transA", 0):
        left = left[::-1]
    if site.integer("transB", 0):
        right = right[::-1]
    if left[1] != right[0]:
        raise NoRuleError
    return [(left[0], right[1])]


def _transpose(site: Site) -> list[Shape]:
    shape = site.shape()
    order = site.integers("perm") or tuple(range(len(shape)))[::-1]
    return [tuple(shape[axis] for axis in order)]


def product(shape: Sequence[int]) -> int:
    """Number of elements."""
    count = 1
    for length in shape:
        count = count * length
    return count


def _reshape(site: Site) -> list[Shape]:
    shape, wanted = site.shape(), site.integers("shape", 1)
    if wanted is None:
        raise NoRuleError
    copies = not site.integer("allowzero", 0)
    found = [
        shape[axis] if copies and axis < len(shape) and length == 0 else length
        for axis, length in enumerate(wanted)
    ]
    free = [axis for axis, length in enumerate(found) if length == -1]
    count = product(shape)
    if free:
        (axis,) = free
        left = quotient(count, product([*found[:axis], *found[axis + 1 :]]))
        if left is None:
            raise NoRuleError
        found[axis] = left
    elif product(found) != count:
        raise NoRuleError
    return [tuple(found)]


def _flatten(site: Site) -> list[Shape]:
    shape, axis = site.shape(), site.integer("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [(product(shape[:axis]), product(shape[axis:]))]


def _squeeze(site: Site) -> list[Shape]:
    shape, axes = site.shape(), site.integers("axes", 1)
    if axes is None:
        return [tuple(length for length in shape if length != 1)]
    gone = {axis % len(shape) for axis in axes}
    if any(shape[axis] != 1 for axis in gone):
        raise NoRuleError
    return [tuple(length for axis, length in enumerate(shape) if axis not in gone)]


def _unsqueeze(site: Site) -> list[Shape]:
    axes = site.integers("axes", 1)
    if axes is None:
        raise NoRuleError
    rank = len(site.shape()) + len(axes)
    added, rest = {axis % rank for axis in axes}, iter(site.shape())
    return [tuple(1 if axis in added else next(rest) for axis in range(rank))]


def _concat(site: Site) -> list[Shape]:
    shapes = [site.shape(index) for index in range(len(site.node.inputs))]
    axis = site.integer("axis", 0) % len(shapes[0])
    total = shapes[0][axis]
    for shape in shapes[1:]:
        if len(shape) != len(shapes[0]) or any(
            length != other
            for place, (length, other) in enumerate(zip(shape, shapes[0], strict=True))
            if place != axis
        ):
            raise NoRuleError
        total = total + shape[axis]
    return [(*shapes[0][:axis], total, *shapes[0][axis + 1 :])]


def _split(site: Site) -> list[Shape]:
    shape, count = site.shape(), len(site.node.outputs)
    axis = site.integer("axis", 0) % len(shape)
    lengths = site.integers("split", 1)
    if lengths is None:
        each = -(-shape[axis] // count)
        lengths = (*[each] * (count - 1), shape[axis] - each * (count - 1))
    total = 0
    for length in lengths:
        total = total + length
    if len(lengths) != count or total != shape[axis] or any(length < 0 for length in lengths):
        raise NoRuleError
    return [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]


def _slice(site: Site) -> list[Shape]:
    shape = list(site.shape())
    starts, ends = site.integers("starts", 1), site.integers("ends", 2)
    if starts is None or ends is None:
        raise NoRuleError
    axes, steps = site.integers("axes", 3), site.integers("steps", 4)
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 1:
            raise NoRuleError
        place = axis % len(shape)
        first, last = (_clamped(edge, shape[place]) for edge in (start, end))
        span = 0 if last <= first else last - first
        shape[place] = span if step == 1 else -(-span // step)
    return [tuple(shape)]


def _clamped(edge: int, length: int) -> int:
    """An edge of a slice with a positive step, from the front."""
    edge = edge + length if edge < 0 else edge
    if edge < 0:
        return 0
    return min(edge, length)


def _gather(site: Site) -> list[Shape]:
    shape, axis = site.shape(), site.integer("axis", 0)
    axis = axis % len(shape)
    return [(*shape[:axis], *site.shape(1), *shape[axis + 1 :])]


def _pad(site: Site) -> list[Shape]:
    shape, pads, axes = list(site.shape()), site.integers("pads", 1), site.integers("axes", 3)
    if pads is None or (axes is not None and axes != tuple(range(len(shape)))):
        raise NoRuleError
    ahead, behind = pads[: len(shape)], pads[len(shape) :]
    return [tuple(b + n + a for b, n, a in zip(ahead, shape, behind, strict=True))]


def _expand(site: Site) -> list[Shape]:
    wanted = site.integers("shape", 1)
    if wanted is None:
        raise NoRuleError
    return [broadcast(site.shape(), wanted)]


def _filled(site: Site) -> list[Shape]:
    wanted = site.integers("shape", 0)
    if wanted is None:
        raise NoRuleError
    return [wanted]


def _reduced(site: Site) -> list[Shape]:
    shape, axes = site.shape(), site.integers("axes", 1)
    if not axes and site.integer("noop_with_empty_axes", 0):
        return [shape]
    gone = {axis % len(shape) for axis in axes or range(len(shape))}
    if site.integer("keepdims", 1):
        return [tuple(1 if axis in gone else length for axis, length in enumerate(shape))]
    return [tuple(length for axis, length in enumerate(shape) if axis not in gone)]


def _range(site: Site) -> list[Shape]:
    start, limit, delta = (site.elements[index] for index in range(3))
    if start is None or limit is None or delta is None or delta[0] != 1:
        raise NoRuleError
    return [(limit[0] - start[0] if limit[0] > start[0] else 0,)]


def _shape(site: Site) -> list[Shape]:
    start, end = site.integer("start", 0), site.integer("end", len(site.shape()))
    return [(len(site.shape()[start:end]),)]


def _windowed(site: Site, channels: int, kernel: Sequence[int]) -> list[Shape]:
    """Convolution and pooling: where a window fits along each spatial axis."""
    shape, rank = site.shape(), len(kernel)
    strides = site.integers("strides") or (1,) * rank
    dilations = site.integers("dilations") or (1,) * rank
    pads = site.integers("pads") or (0,) * (2 * rank)
    automatic = site.node.attributes.get("auto_pad", "NOTSET")
    if automatic not in ("NOTSET", "VALID") or site.integer("ceil_mode", 0):
        raise NoRuleError
    spatial = []
    for axis in range(rank):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        room = shape[2 + axis] + (pads[axis] + pads[rank + axis]) - reach
        if room < 0:
            raise NoRuleError
        spatial.append((room if strides[axis] == 1 else room // strides[axis]) + 1)
    return [(shape[0], channels, *spatial)]


def _transposed_convolution(site: Site) -> list[Shape]:
    shape, weights = site.shape(), site.shape(1)
    rank = len(shape) - 2
    if "output_shape" in site.node.attributes or shape[1] != weights[0]:
        raise NoRuleError
    if site.node.attributes.get("auto_pad", "NOTSET") != "NOTSET":
        raise NoRuleError
    strides = site.integers("strides") or (1,) * rank
    dilations = site.integers("dilations") or (1,) * rank
    pads = site.integers("pads") or (0,) * (2 * rank)
    extra = site.integers("output_padding") or (0,) * rank
    spatial = []
    for axis in range(rank):
        reach = dilations[axis] * (weights[2 + axis] - 1) + 1 + extra[axis]
        before = shape[2 + axis] * strides[axis] - strides[axis]
        spatial.append(before + (reach - pads[axis] - pads[rank + axis]))
    return [(shape[0], weights[1] * site.integer("group", 1), *spatial)]


def _resize(site: Site) -> list[Shape]:
    """By sizes that are known, or by whole factors."""
    node, shape = site.node, site.shape()
    if node.version < 11 or not {"axes", "keep_aspect_ratio_policy"}.isdisjoint(node.attributes):
        raise NoRuleError
    if len(node.inputs) > 3 and node.inputs[3]:
        sizes = site.elements[3]
        if sizes is None:
            raise NoRuleError
        return [tuple(sizes)]
    factors = site.constants[2] if len(node.inputs) > 2 else None
    if factors is None or factors.shape != (len(shape),):
        raise NoRuleError
    whole = [int(factor) for factor in factors.array().tolist()]
    if whole != factors.array().tolist() or min(whole) < 1:
        raise NoRuleError
    return [tuple(length * factor for length, factor in zip(shape, whole, strict=True))]


def _convolution(site: Site) -> list[Shape]:
    weights = site.shape(1)
    if site.shape()[1] != weights[1] * site.integer("group", 1):
        raise NoRuleError
    return _windowed(site, weights[0], weights[2:])


def _pooling(site: Site) -> list[Shape]:
    kernel = site.integers("kernel_shape")
    if kernel is None or len(site.node.writes) > 1:
        raise NoRuleError
    return _windowed(site, site.shape()[1], kernel)


def _global_pooling(site: Site) -> list[Shape]:
    shape = site.shape()
    return [(*shape[:2], *[1] * (len(shape) - 2))]


def _attention(site: Site) -> list[Shape]:
    if len(site.shape()) != 4 or len(site.node.writes) != 1:
        raise NoRuleError
    return [(*site.shape()[:3], site.shape(2)[3])]


def _dynamic_quantize(site: Site) -> list[Shape]:
    return [site.shape(), (), ()]


SAME = (
    "Abs", "BatchNormalization", "Cast", "Ceil", "Celu", "Clip", "Cos", "CumSum",
    "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "GroupNormalization",
    "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg", "Not", "QuantizeLinear",
    "RMSNormalization", "Reciprocal", "Relu", "RotaryEmbedding", "Round", "ScatterElements",
    "ScatterND", "Selu", "Sigmoid", "Sign", "Sin", "Softmax", "Softplus", "Softsign", "Sqrt",
    "Swish", "Tan", "Tanh", "TensorScatter", "ThresholdedRelu", "Trilu",
)  # fmt: skip
ELEMENTWISE = (
    "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean",
    "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip
REDUCED = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip

RULES: dict[str, Rule] = {
    **dict.fromkeys(SAME, _same),
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(REDUCED, _reduced),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _matmul),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _global_pooling),
    **dict.fromkeys(("Conv", "ConvInteger"), _convolution),
    **dict.fromkeys(("AveragePool", "MaxPool"), _pooling),
    "Attention": _attention,
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "ConvTranspose": _transposed_convolution,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Shape": _shape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""Operators of ONNX's own domain. Each rule refuses what it does not know."""
