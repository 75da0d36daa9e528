"""Emits operators that read or write at positions that an operand of indices gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightship._core import NativeKernel
from tightship.engine.kernels.kernel_context import KernelContext, axis_of, covered, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import dense_strides
from tightship.engine.lower.steps.strides import byte_strides, plain, site_of
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node

INDICES = frozenset({DType.INT32, DType.INT64})


@dataclass(frozen=True, slots=True)
class _Tuples:
    """Positions that indices select.

    The kernel walks `around`, lengths of the data's axes before the positions of index tuples, then
    `shape`, the positions, then `behind`, the lengths of the data's axes after them.

    Attributes:
        walked: Axis of the data for each walked axis; None if an index selects the position.
        counted: Axes of the data that the elements of a tuple index, in order.
    """

    shape: tuple[int, ...]
    around: tuple[int, ...]
    behind: tuple[int, ...]
    walked: tuple[int | None, ...]
    counted: tuple[int, ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """Shape that the kernel walks."""
        return (*self.around, *self.shape, *self.behind)

    def tuple_strides(self, strides: Sequence[int]) -> list[int]:
        """Return the strides of the indices under the walked shape."""
        return [0] * len(self.around) + list(strides) + [0] * len(self.behind)

    def data_strides(self, strides: Sequence[int]) -> list[int]:
        """Return the strides of the indexed data; 0 where an index selects the position."""
        return [0 if axis is None else strides[axis] for axis in self.walked]


def _rows(context: KernelContext) -> _Tuples:
    """Let each index select a row of an axis (Gather)."""
    shape, index = context.shape(0), context.shape(1)
    axis = axis_of(context.integer("axis", 0), len(shape))
    walked = (*range(axis), *(None,) * len(index), *range(axis + 1, len(shape)))
    return _Tuples(index, shape[:axis], shape[axis + 1 :], walked, (axis,))


def _along_axis(context: KernelContext) -> _Tuples:
    """Let each index replace one coordinate of its own position (GatherElements and similar)."""
    rank = len(context.shape(0))
    axis = axis_of(context.integer("axis", 0), rank)
    walked = tuple(None if a == axis else a for a in range(rank))
    return _Tuples(context.shape(1), (), (), walked, (axis,))


def _by_tuples(context: KernelContext) -> _Tuples:
    """Let the last axis of the indices hold leading coordinates (GatherND, ScatterND)."""
    shape, index = context.shape(0), context.shape(1)
    batch = context.integer("batch_dims", 0)
    first = batch + index[-1]
    walked = (*range(batch), *(None,) * (len(index) - 1 - batch), *range(first, len(shape)))
    return _Tuples(index[:-1], (), shape[first:], walked, tuple(range(batch, first)))


def _indexing(
    node: Node, tuples: _Tuples, index: Operand, data: tuple[tuple[int, ...], list[int]]
) -> tuple[str, int, list[int], list[int], list[tuple[int, int, int]]]:
    """Return what the core checks and follows; see `NativeKernel.gather`."""
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
    """Return the walked shape, and the strides in the data, the indices and `other`.

    `steps` are the data's own strides; `other` is read into or written from.
    """
    assert tuples.positions == other.shape, (tuples, other)
    return (
        list(tuples.positions),
        tuples.data_strides(steps),
        tuples.tuple_strides(index_strides),
        byte_strides(other),
    )


def _gather(tuples_of: Callable[[KernelContext], _Tuples]) -> Callable[[Builder, Node], None]:
    def emit(builder: Builder, node: Node) -> None:
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

    return emit


def _scatter(tuples_of: Callable[[KernelContext], _Tuples]) -> Callable[[Builder, Node], None]:
    """Scatter in the data's own bytes if they have no other reader."""

    def emit(builder: Builder, node: Node) -> None:
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
        kernel = covered(NativeKernel.scatter(kind, indexing, walk, (shape, own, steps)))
        target = builder.output(node.outputs[0])
        taken_over = [(target, data)] if context.read_once(0) and own == steps else []
        builder.native(
            node, ("scatter", kernel), [data, index, updates], [target], in_place=taken_over
        )

    return emit


gather = _gather(_rows)
gather_elements = _gather(_along_axis)
gather_nd = _gather(_by_tuples)
scatter = _scatter(_along_axis)
scatter_nd = _scatter(_by_tuples)
