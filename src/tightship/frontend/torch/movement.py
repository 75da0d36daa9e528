"""Views, and operators that move elements."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tightship.frontend.torch.call import Call
from tightship.frontend.torch.refusal import refused
from tightship.frontend.writer import Operand, axis_of
from tightship.graph import DType
from tightship.graph.length import is_length, same_for_all

INT64_MAX = (1 << 63) - 1


def viewed(call: Call) -> Operand:
    """Translate a reshape."""
    return call.reshaped(call["self"], call.shape)


def restrided(call: Call) -> Operand:
    """Translate `as_strided` if its strides are those of a reshape."""
    dense: list[int] = []
    step = 1
    for length in reversed(call.shape):
        dense.insert(0, step)
        step *= length
    operand: Operand = call["self"]
    if list(call["stride"]) != dense or call["storage_offset"] or step != math.prod(operand.shape):
        raise refused(call.node, f"reads memory by the strides {list(call['stride'])}")
    return call.reshaped(operand, call.shape)


def permuted(call: Call) -> Operand:
    """Translate a permutation of axes."""
    operand: Operand = call["self"]
    return _transposed(call, [axis_of(axis, operand.rank) for axis in call["dims"]])


def swapped(call: Call) -> Operand:
    """Translate an exchange of two axes."""
    operand: Operand = call["self"]
    order = list(range(operand.rank))
    first = axis_of(call.arguments.get("dim0", 0), operand.rank)
    second = axis_of(call.arguments.get("dim1", 1), operand.rank)
    if operand.rank:
        order[first], order[second] = order[second], order[first]
    return _transposed(call, order)


def _transposed(call: Call, order: Sequence[int]) -> Operand:
    operand: Operand = call["self"]
    maker = call.writer.makers.get(operand.name)
    if maker is not None and maker.operator == "Transpose" and "perm" in maker.attributes:
        before = maker.attributes["perm"]
        assert isinstance(before, tuple)
        operand, order = call.writer.operand(maker.inputs[0]), [int(before[axis]) for axis in order]
    if list(order) == list(range(operand.rank)):
        return operand
    return call.result("Transpose", operand, perm=tuple(order))


def widened(call: Call) -> Operand:
    """Translate the insertion of an axis of length 1."""
    operand: Operand = call["self"]
    return call.result("Unsqueeze", operand, call.integers(axis_of(call["dim"], operand.rank + 1)))


def expanded(call: Call) -> Operand:
    """Translate an expansion of axes of length 1, and of new ones in front."""
    operand: Operand = call["self"]
    if same_for_all(operand.shape, call.shape):
        return operand
    return call.result("Expand", operand, call.integers(*call.shape))


def repeated(call: Call) -> Operand:
    """Translate a repetition of the whole tensor along each axis."""
    operand: Operand = call["self"]
    counts = call["repeats"]
    shape = (*[1] * (len(counts) - operand.rank), *operand.shape)
    return call.result("Tile", call.reshaped(operand, shape), call.integers(*counts))


def selected(call: Call) -> Operand:
    """Translate the selection of a position of an axis, which is removed."""
    operand: Operand = call["self"]
    axis = axis_of(call["dim"], operand.rank)
    length, index = operand.shape[axis], call["index"]
    if not is_length(length):
        index = index % length
    return call.result("Gather", operand, call.scalar(index, DType.INT64), axis=axis)


def sliced(call: Call) -> Operand:
    """Translate a slice along an axis."""
    operand: Operand = call["self"]
    if same_for_all(operand.shape, call.shape):
        return operand
    axis = axis_of(call["dim"], operand.rank)
    ranges = (call.integers(number) for number in (*_ends(call), axis, call["step"]))
    return call.result("Slice", operand, *ranges)


def _ends(call: Call) -> tuple[int, int]:
    """Return start and stop of a slice, which may be negative or out of range."""
    start, stop = call["start"], call["end"]
    return (0 if start is None else start), (INT64_MAX if stop is None else stop)


def flipped(call: Call) -> Operand:
    """Translate a reversal of axes."""
    operand: Operand = call["self"]
    axes = [axis_of(axis, operand.rank) for axis in call["dims"]]
    if not axes:
        return operand
    ones = [-1] * len(axes)
    starts, stops = call.integers(*ones), call.integers(*[-INT64_MAX] * len(axes))
    return call.result("Slice", operand, starts, stops, call.integers(*axes), call.integers(*ones))


def joined(call: Call) -> Operand:
    """Translate a concatenation; tensors without elements are ignored."""
    parts = [call.cast(part, call.dtype) for part in call["tensors"] if part.shape != (0,)]
    if len(parts) < 2:
        return parts[0] if parts else call.cast(call["tensors"][0], call.dtype)
    return call.result("Concat", *parts, axis=axis_of(call["dim"], len(call.shape)))


def split(call: Call) -> tuple[Operand | None, ...]:
    """Translate a split along an axis."""
    operand: Operand = call["self"]
    return _parts(call, operand, axis_of(call["dim"], operand.rank))


def unbound(call: Call) -> tuple[Operand | None, ...]:
    """Translate `unbind`: each position of an axis, which is removed."""
    operand: Operand = call["self"]
    axis = axis_of(call["dim"], operand.rank)
    return tuple(
        call.result("Gather", operand, call.scalar(index, DType.INT64), axis=axis)
        for index in range(operand.shape[axis])
    )


def _parts(call: Call, operand: Operand, axis: int) -> tuple[Operand | None, ...]:
    types = [type_ for type_ in call.types if type_ is not None]
    if len(types) == 1:
        return (operand,)
    lengths = call.integers(*[shape[axis] for _, shape in types])
    outputs = [call.writer.define(call.node.name, *type_) for type_ in types]
    call.writer.node("Split", (operand, lengths), outputs, {"axis": axis})
    return tuple(outputs)


def padded(call: Call) -> Operand:
    """Translate padding by a constant; negative amounts cut elements off."""
    operand: Operand = call["self"]
    amounts = list(call["pad"])
    before = [0] * (operand.rank - len(amounts) // 2) + amounts[::2][::-1]
    after = [0] * (operand.rank - len(amounts) // 2) + amounts[1::2][::-1]
    value = call.scalar(call["value"], call.dtype)
    return call.result("Pad", operand, call.integers(*before, *after), value, mode="constant")


def written_over_slice(call: Call) -> Operand:
    """Translate the replacement of a slice: what is before, the replacement, what is after."""
    operand: Operand = call["self"]
    axis = axis_of(call["dim"], operand.rank)
    start, stop = (_clamped(end, operand.shape[axis]) for end in _ends(call))
    step = call["step"]
    if step != 1 and axis:
        raise refused(call.node, f"writes with step {step} along an axis that is not the first")
    if step != 1:
        rows = np.arange(start, stop, step, dtype=np.int64)[:, np.newaxis]
        source = call.cast(call["src"], call.dtype)
        return call.result("ScatterND", operand, call.held(rows), source)
    return _replaced(call, axis, (start, max(start, stop)))


def _clamped(end: int, length: int) -> int:
    return min(max(end + length if end < 0 else end, 0), length)


def written_over_position(call: Call) -> Operand:
    """Translate the replacement of one position of an axis."""
    operand: Operand = call["self"]
    axis = axis_of(call["dim"], operand.rank)
    index = call["index"] % operand.shape[axis]
    return _replaced(call, axis, (index, index + 1))


def _replaced(call: Call, axis: int, where: tuple[int, int]) -> Operand:
    operand: Operand = call["self"]
    start, stop = where
    shape = (*operand.shape[:axis], stop - start, *operand.shape[axis + 1 :])
    middle = call.reshaped(call.cast(call["src"], call.dtype), shape)
    parts = [
        _range(call, operand, axis, (0, start)),
        middle,
        _range(call, operand, axis, (stop, operand.shape[axis])),
    ]
    kept = [part for part in parts if part.shape[axis]]
    return kept[0] if len(kept) == 1 else call.result("Concat", *kept, axis=axis)


def _range(call: Call, operand: Operand, axis: int, where: tuple[int, int]) -> Operand:
    start, stop = where
    shape = (*operand.shape[:axis], stop - start, *operand.shape[axis + 1 :])
    if start == stop:
        return Operand("", operand.dtype, shape)
    ranges = (call.integers(number) for number in (start, stop, axis, 1))
    return call.add("Slice", (operand.dtype, shape), operand, *ranges)


def shuffled(call: Call) -> Operand:
    """Translate PixelShuffle: channels become pixels of a larger image."""
    size: int = call["upscale_factor"]
    return call.result("DepthToSpace", call["self"], blocksize=size, mode="CRD")


TABLE: dict[str, Callable[[Call], Operand | tuple[Operand | None, ...]]] = {
    "_reshape_copy.default": viewed,
    "_unsafe_view.default": viewed,
    "as_strided.default": restrided,
    "cat.default": joined,
    "constant_pad_nd.default": padded,
    "expand.default": expanded,
    "flip.default": flipped,
    "permute.default": permuted,
    "pixel_shuffle.default": shuffled,
    "repeat.default": repeated,
    "reshape.default": viewed,
    "select.int": selected,
    "select_scatter.default": written_over_position,
    "slice.Tensor": sliced,
    "slice_scatter.default": written_over_slice,
    "split_with_sizes.default": split,
    "split.Tensor": split,
    "squeeze.default": viewed,
    "squeeze.dim": viewed,
    "squeeze.dims": viewed,
    "t.default": swapped,
    "transpose.int": swapped,
    "unbind.int": unbound,
    "unsqueeze.default": widened,
    "view.default": viewed,
}
