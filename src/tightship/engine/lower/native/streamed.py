"""Emits products of few rows by many weights, which are streamed past the rows.

A network's last convolutions have 7x7 pixels and megabytes of weights: unless these are prefetched,
the time is that of reading them from memory. A product of a few rows by a constant matrix is a
convolution of one tap.
"""

from dataclasses import dataclass, replace

from tightship import _core
from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.lower.passes.widened import Widened
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.fused_nodes import eltwise_of, take_bias
from tightship.engine.lower.steps.layouts import AVX512, channels_last, row_major
from tightship.engine.lower.steps.window import window_of
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node, element_count

HEADS = frozenset({"Conv", "Gemm", "MatMul"})
BLOCK = 32
"""Outputs of a block of weights."""
ROWS_MAX = 64
"""Rows up to which streaming pays: 10 to 25 % of a convolution with 49, nothing with 196."""
FEW_ROWS = 3
"""Rows up to which the kernel reads several blocks of weights at once."""
ROWS_AT_ONCE = 14
"""Rows that the kernel holds in registers."""
DEPTH_MAX = 128
"""Channels taken at a time if rows exceed `ROWS_AT_ONCE`."""
WEIGHTS_MIN_BYTES = 1 << 16
"""Least bytes of one tap's weights; smaller ones stay in the caches anyway."""
INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Problem:
    """Convolution of `rows` pixels: shapes, window, and strides of the weights."""

    counts: tuple[int, int, int]
    """Batch, channels, outputs."""
    source: tuple[int, int]
    target: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int]
    steps: tuple[int, int, int]
    """Elements between the weights of two outputs, two channels, two taps."""

    @property
    def rows(self) -> int:
        """Pixels of the result."""
        return self.counts[0] * self.target[0] * self.target[1]

    @property
    def taps(self) -> int:
        """Elements of the kernel window."""
        return self.kernel[0] * self.kernel[1]

    @property
    def is_product(self) -> bool:
        """Whether each row of the result is a row of the source times a matrix."""
        return self.taps == 1 and self.strides == (1, 1) and self.source == self.target

    @property
    def by_block(self) -> bool:
        """Whether the sums of a block stay in registers for all of its weights."""
        return self.rows <= ROWS_AT_ONCE

    @property
    def depth(self) -> int:
        """Channels taken at a time; divides their number."""
        channels = self.counts[1]
        if self.by_block:
            return channels
        return next(d for d in range(min(DEPTH_MAX, channels), 0, -1) if channels % d == 0)

    @property
    def fits(self) -> bool:
        """Whether the kernel covers it, and its weights exceed the caches."""
        _, channels, outputs = self.counts
        return channels * outputs * 4 >= WEIGHTS_MIN_BYTES and (
            self.by_block or (outputs % BLOCK == 0 and self.depth >= BLOCK)
        )

    def layouts(self) -> tuple[MemoryDesc, MemoryDesc]:
        """Return the layouts of the weights as stored and as the kernel reads them."""
        _, channels, outputs = self.counts
        by_output, by_channel, by_tap = self.steps
        if self.by_block:
            dims = [outputs, channels, *self.kernel]
            strides = [by_output, by_channel, by_tap * self.kernel[1], by_tap]
            return MemoryDesc(dims, "float32", strides), MemoryDesc.named(
                dims, "float32", "Acdb32a"
            )
        depth = self.depth
        dims = [outputs // BLOCK, BLOCK, channels // depth, depth, self.taps]
        stored = [by_output * BLOCK, by_output, by_channel * depth, by_channel, by_tap]
        streamed = [depth * BLOCK, 1, outputs * depth, BLOCK, outputs * channels]
        return MemoryDesc(dims, "float32", stored), MemoryDesc(dims, "float32", streamed)

    def shape(self) -> NativeKernel.ConvolutionShape:
        """Describe the convolution to the kernel."""
        return NativeKernel.ConvolutionShape(
            list(self.counts), list(self.source), list(self.target), list(self.kernel),
            list(self.strides), list(self.dilations), list(self.pads), self.depth, self.by_block,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ending:
    """Effect of a product's fused nodes on its sums."""

    addend: str = ""
    low: float = -INFINITY
    high: float = INFINITY


def streamed(builder: Builder, node: Node) -> bool:
    """Emit a convolution, Gemm or MatMul by a constant, if streaming makes it faster."""
    if not builder.options.stream_weights or node.operator not in HEADS or node.domain:
        return False
    if builder.options.packed is not None and node.operator != "Conv":
        return False  # other numbers of rows would need other layouts of the matrix
    if not is_covered(builder, node):
        return False
    problem = PROBLEMS[node.operator](builder, node)
    if problem is None or not _pays(builder, node, problem):
        return False
    head, bias = with_bias(builder, node, problem.counts[2])
    ending = _ending(builder, head)
    if ending is None:
        return False
    _emit(builder, head, problem, bias, ending)
    return True


def ends_apart(builder: Builder, node: Node) -> bool:
    """Whether a convolution, or a product of few rows, can stream without its last fused node.

    That node is an activation, which then runs as a step of its own.
    """
    is_product = node.operator in ("Gemm", "MatMul")
    if not node.fused or not builder.options.stream_weights or node.domain:
        return False
    if is_product and builder.options.packed is not None:
        return False
    if not (is_product or node.operator == "Conv") or not is_covered(builder, node):
        return False
    problem = PROBLEMS[node.operator](builder, node)
    if (
        problem is None
        or not _pays(builder, node, problem)
        or (is_product and problem.rows > FEW_ROWS)
    ):
        return False
    whole, _ = with_bias(builder, node, problem.counts[2])
    if _ending(builder, whole) is not None or not whole.fused:
        return False
    head, _ = with_bias(builder, replace(node, fused=node.fused[:-1]), problem.counts[2])
    return eltwise_of(builder, node.fused[-1]) is not None and _ending(builder, head) is not None


def _pays(builder: Builder, node: Node, problem: Problem) -> bool:
    """Whether the kernel covers the product, and streaming its weights pays.

    If a program for other shapes has packed the weights, their layout decides, because a second
    copy costs more than is gained: a network runs up to 4 % longer with rows past the limit
    (ResNet-50 of 16 images).
    """
    if not problem.fits:
        return False
    name, streamed_layout = node.inputs[1], problem.layouts()[1]
    if builder.packed_layout(name, streamed_layout.dims) == streamed_layout:
        return True
    others = builder.packed_layout(name, list(builder.value(name).static_shape))
    return problem.rows <= ROWS_MAX and others is None


def with_bias(builder: Builder, node: Node, columns: int) -> tuple[Node, str]:
    """Separate a constant row that is added to a product; return the node and its bias."""
    if len(node.inputs) > 2 or node.operator == "Conv":
        return node, node.inputs[2] if len(node.inputs) > 2 else ""
    return take_bias(builder, node, columns)


def is_covered(builder: Builder, node: Node, isa: int = AVX512) -> bool:
    """Whether the node is a float32 product by constants, and the processor has `isa`."""
    names = [name for name in (*node.reads, *node.writes) if name]
    values = [builder.value(name) for name in names]
    return (
        all(v.is_static and v.dtype is DType.FLOAT32 and 0 not in v.static_shape for v in values)
        and all(builder.constant(name) is not None for name in node.inputs[1:] if name)
        and not isinstance(builder.constant(node.inputs[1]), Widened)
        and all(builder.home_is_planned(name) for name in node.reads)
        and bool(_core.onednn_cpu_isa() & isa)
    )


def _convolution(builder: Builder, node: Node) -> Problem | None:
    before, after, weights = (
        builder.value(name).static_shape
        for name in (node.inputs[0], node.outputs[0], node.inputs[1])
    )
    if len(before) not in (3, 4) or node.attributes.get("group", 1) != 1:
        return None
    if builder.options.blocked and element_count(before[2:]) > 1:
        return None
    window = window_of(node, weights[2:], before[2:], after[2:])
    taps = element_count(weights[2:])

    def pair(values: tuple[int, ...], absent: int) -> tuple[int, int]:
        return (absent, values[0]) if len(values) == 1 else (values[0], values[1])

    return Problem(
        (before[0], before[1], after[1]), pair(before[2:], 1), pair(after[2:], 1),
        pair(weights[2:], 1), pair(window.strides, 1), pair(window.dilations, 1),
        pair(window.begin, 0), (weights[1] * taps, taps, 1),
    )  # fmt: skip


def _gemm(builder: Builder, node: Node) -> Problem | None:
    attributes = node.attributes
    if attributes.get("alpha", 1.0) != 1.0 or attributes.get("beta", 1.0) != 1.0:
        return None
    shape = builder.value(node.inputs[1]).static_shape
    turned = bool(attributes.get("transB", 0))
    depth, columns = shape[::-1] if turned else shape
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if attributes.get("transA", 0) or (bias and builder.value(bias).static_shape != (columns,)):
        return None
    rows = builder.value(node.inputs[0]).static_shape[0]
    return _product(rows, depth, columns, turned=turned)


def _matmul(builder: Builder, node: Node) -> Problem | None:
    left, right = (builder.value(name).static_shape for name in node.inputs)
    if len(left) < 2 or len(right) != 2:
        return None
    return _product(element_count(left[:-1]), right[0], right[1], turned=False)


def _product(rows: int, depth: int, columns: int, *, turned: bool) -> Problem:
    """Make the problem of rows times a matrix, which may be stored transposed."""
    one, none = (1, 1), (0, 0)
    steps = (depth, 1, 1) if turned else (1, columns, 1)
    return Problem((1, depth, columns), (1, rows), (1, rows), one, one, one, none, steps)


def addend_and_activation(
    builder: Builder, node: Node
) -> tuple[str, tuple[str, float, float] | None] | None:
    """Split the fused nodes into an addend of the same shape and an activation, either optional.

    Return None if there are other fused nodes.
    """
    fused = list(node.fused)
    name, addend = node.outputs[0], ""
    if fused and fused[0].operator in ("Add", "Sum"):
        first = fused.pop(0)
        addend = first.inputs[1 if first.inputs[0] == name else 0]
        shape = builder.value(node.outputs[0]).static_shape
        if builder.value(addend).static_shape != shape or builder.constant(addend) is not None:
            return None
    if not fused:
        return addend, None
    found = eltwise_of(builder, fused[0]) if len(fused) == 1 else None
    return None if found is None else (addend, found)


def _ending(builder: Builder, node: Node) -> Ending | None:
    """Return an addend of the same shape and clamping limits, if nothing else is fused."""
    ending = addend_and_activation(builder, node)
    if ending is None:
        return None
    addend, found = ending
    if found is None:
        return Ending(addend)
    if found not in (("relu", 0.0, 0.0), ("clip", *found[1:])):
        return None
    low, high = (0.0, INFINITY) if found[0] == "relu" else found[1:]
    return Ending(addend, low, high)


def _emit(builder: Builder, node: Node, problem: Problem, bias: str, ending: Ending) -> None:
    name, shape = node.writes[0], builder.value(node.writes[0]).static_shape
    is_image = node.operator == "Conv"
    layout = channels_last if is_image else row_major
    reads = [builder.in_layout(node.inputs[0], layout(builder.value(node.inputs[0]).static_shape))]
    reads.append(builder.weight(node.inputs[1], *problem.layouts()))
    if bias:
        vector = MemoryDesc([problem.counts[2]])
        reads.append(builder.weight(bias, vector, vector))
    if ending.addend:
        reads.append(builder.in_layout(ending.addend, layout(shape)))
    target = builder.output(name, layout(shape))
    kernel = problem.shape()
    builder.native(
        node,
        ("streamed", NativeKernel.streamed_convolution(
            kernel, bool(bias), bool(ending.addend), ending.low, ending.high)),
        reads,
        [target],
        in_place=[(target, reads[-1])] if ending.addend and stands_alone(reads) else [],
    )  # fmt: skip


PROBLEMS = {"Conv": _convolution, "Gemm": _gemm, "MatMul": _matmul}


def stands_alone(reads: list[Operand]) -> bool:
    """Whether the last operand shares its slot with no other."""
    places = [(operand.space, operand.slot) for operand in reads]
    return places.count(places[-1]) == 1
