"""Operators that read or write where an operand of indices says, which only the run knows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.strides import byte_strides, plain, site_of
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node

INDICES = frozenset({DType.INT32, DType.INT64})


@dataclass(frozen=True, slots=True)
class _Tuples:
    """Where indices point: tuples under a shape, and what each index of a tuple counts.

    `around` are lengths of the data's dimensions ahead of the tuples' positions, `behind` those
    that follow them: positions and both make the shape that is walked.

    Attributes:
        walked: Whether a dimension of the data is walked with the positions: its axis, or None.
        counted: Axes of the data that the indices count, and their places in a tuple.
    """

    shape: tuple[int, ...]
    around: tuple[int, ...]
    behind: tuple[int, ...]
    walked: tuple[int | None, ...]
    counted: tuple[int, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The shape that is walked."""
        return (*self.around, *self.shape, *self.behind)

    def tuple_strides(self, strides: Sequence[int]) -> list[int]:
        """Strides of the indices under the shape that is walked."""
        return [0] * len(self.around) + list(strides) + [0] * len(self.behind)

    def data_strides(self, strides: Sequence[int]) -> list[int]:
        """Strides of what is indexed, 0 where an index says how far."""
        return [0 if axis is None else strides[axis] for axis in self.walked]


def _rows(context: KernelContext) -> _Tuples:
    """Each index names a row of an axis (Gather)."""
    shape, index = context.shape(0), context.shape(1)
    axis = axis_of(context.integer("axis", 0), len(shape))
    walked = (*range(axis), *(None,) * len(index), *range(axis + 1, len(shape)))
    return _Tuples(index, shape[:axis], shape[axis + 1 :], walked, (axis,))


def _along_axis(context: KernelContext) -> _Tuples:
    """Each index replaces one coordinate of its own position (GatherElements and kin)."""
    rank = len(context.shape(0))
    axis = axis_of(context.integer("axis", 0), rank)
    walked = tuple(None if a == axis else a for a in range(rank))
    return _Tuples(context.shape(1), (), (), walked, (axis,))


def _by_tuples(context: KernelContext) -> _Tuples:
    """The last axis of the indices holds leading coordinates (GatherND, ScatterND)."""
    shape, index = context.shape(0), context.shape(1)
    batch = context.integer("batch_dims", 0)
    first = batch + index[-1]
    walked = (*range(batch), *(None,) * (len(index) - 1 - batch), *range(first, len(shape)))
    return _Tuples(index[:-1], (), shape[first:], walked, tuple(range(batch, first)))


def _indexing(
    node: Node, tuples: _Tuples, index: Operand, data: tuple[tuple[int, ...], list[int]]
) -> tuple[str, int, list[int], list[int], list[tuple[int, int, int]]]:
    """What the core checks and follows: see `NativeKernel.gather`."""
    strides = byte_strides(index)
    between = strides[-1] if len(strides) > len(tuples.shape) else 0
    coordinates = [
        (data[0][axis], between * place, data[1][axis]) for place, axis in enumerate(tuples.counted)
    ]
    positions = strides[: len(tuples.shape)]
    return node.name, index.dtype.itemsize, list(tuples.shape), positions, coordinates


def _walk(
    tuples: _Tuples, steps: Sequence[int], index_strides: Sequence[int], other: Operand
) -> tuple[list[int], list[int], list[int], list[int]]:
    """The shape that is walked, and how far each step of it goes.

    In what is indexed, by `steps`; in the indices; in `other`, what is read into or written from.
    """
    assert tuples.positions == other.shape, (tuples, other)
    return (
        list(tuples.positions),
        tuples.data_strides(steps),
        tuples.tuple_strides(index_strides),
        byte_strides(other),
    )


def _gather(tuples_of: Callable[[KernelContext], _Tuples]) -> Callable[[Builder, Node], bool]:
    def emit(builder: Builder, node: Node) -> bool:
        context = site_of(builder, node)
        require(context.input(1).dtype in INDICES)
        tuples = tuples_of(context)
        data, index = plain(builder, node.inputs[0]), plain(builder, node.inputs[1])
        target = builder.output(node.outputs[0])
        steps = byte_strides(data)
        indexing = _indexing(node, tuples, index, (data.shape, steps))
        walk = _walk(tuples, steps, indexing[3], target)
        kernel = NativeKernel.gather(target.dtype.itemsize, indexing, walk)
        builder.native(node, ("gather", kernel), [data, index], [target])
        return True

    return emit


def _scatter(tuples_of: Callable[[KernelContext], _Tuples]) -> Callable[[Builder, Node], bool]:
    """In the data's own bytes, where nothing else reads them."""

    def emit(builder: Builder, node: Node) -> bool:
        context = site_of(builder, node)
        require(context.input(1).dtype in INDICES)
        tuples = tuples_of(context)
        value = context.output()
        assert value.dtype is not None
        item, shape = value.dtype.itemsize, list(value.static_shape)
        steps = [item * stride for stride in dense_strides(shape)]
        data, index, updates = (plain(builder, name) for name in node.inputs[:3])
        indexing = _indexing(node, tuples, index, (value.static_shape, steps))
        walk = _walk(tuples, steps, indexing[3], updates)
        own = byte_strides(data)
        kind = (item, value.dtype.value, context.text("reduction", "none"))
        kernel = NativeKernel.scatter(kind, indexing, walk, (shape, own, steps))
        require(kernel is not None)
        assert kernel is not None
        target = builder.output(node.outputs[0])
        taken_over = [(target, data)] if context.read_once(0) and own == steps else []
        builder.native(
            node, ("scatter", kernel), [data, index, updates], [target], in_place=taken_over
        )
        return True

    return emit


INDEXED: Mapping[tuple[str, str], Callable[[Builder, Node], bool]] = {
    ("", "Gather"): _gather(_rows),
    ("", "GatherElements"): _gather(_along_axis),
    ("", "GatherND"): _gather(_by_tuples),
    ("", "Scatter"): _scatter(_along_axis),
    ("", "ScatterElements"): _scatter(_along_axis),
    ("", "ScatterND"): _scatter(_by_tuples),
}
