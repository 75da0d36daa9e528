"""Batch axes of operators that compute: elementwise, in windows, over axes."""

from tightship.graph.batch_axis import movement, products
from tightship.graph.batch_axis.step import Rule, Rules, Step
from tightship.graph.operators.row import Category
from tightship.graph.operators.table import row_of


def rule_of(at: Step) -> Rule:
    """Return the rule of a node's operator.

    Raises:
        FixedBatchError: The operator has none.
    """
    found = None if at.node.domain else RULES.get(at.node.operator)
    if found is None and row_of(at.node).category is Category.ELEMENTWISE:
        found = _elementwise
    if found is None:
        at.refuse("is not known to keep samples apart")
    return found


def _elementwise(at: Step) -> tuple[int | None, ...]:
    rank = len(at.result)
    ranks = [len(at.shape(index)) if name else 0 for index, name in enumerate(at.node.inputs)]
    found = {axis + rank - ranks[index] for index, axis in enumerate(at.axes) if axis is not None}
    if len(found) > 1:
        at.refuse("joins samples that lie along different axes")
    (position,) = found
    for index, name in enumerate(at.node.inputs):
        place = position - (rank - ranks[index])
        if name and at.axes[index] is None and place >= 0 and at.shape(index)[place] != 1:
            if at.shape(index)[place] != at.batch:
                at.refuse(f"broadcasts a sample over `{name}`")
            at.repeat(index, place)
    return (position,)


def _outermost(at: Step) -> tuple[int | None, ...]:
    """Follow an operator whose first axis has the samples, and whose weights have none."""
    at.alone(0)
    if at.main != 0:
        at.refuse(f"has its samples along axis {at.main} rather than 0")
    return (0,)


def _largest_in_windows(at: Step) -> tuple[int | None, ...]:
    if any(at.node.outputs[1:]):
        at.refuse("counts places of its maxima over the whole batch")
    return _outermost(at)


def _normalized_by_batch(at: Step) -> tuple[int | None, ...]:
    if at.node.integer("training_mode", 0):
        at.refuse("takes means over the batch")
    return _outermost(at)


def _softmax(at: Step) -> tuple[int | None, ...]:
    rank = len(at.shape(0))
    axis = at.node.integer("axis", -1 if at.node.version >= 13 else 1) % rank
    axes = range(axis, rank) if at.node.version < 13 else (axis,)
    at.apart_from(at.main, tuple(axes), rank, "normalizes")
    return (at.main,)


def _layer_norm(at: Step) -> tuple[int | None, ...]:
    at.alone(0)
    rank = len(at.shape(0))
    first = at.node.integer("axis", -1) % rank
    at.apart_from(at.main, tuple(range(first, rank)), rank, "normalizes")
    return (at.main,)


def _norm_along(at: Step) -> tuple[int | None, ...]:
    at.apart_from(at.main, (at.node.integer("axis", -1),), len(at.shape(0)), "normalizes")
    return (at.main,)


def _over_axes(at: Step) -> tuple[int | None, ...]:
    rank = len(at.shape(0))
    given = at.integers(1, "axes")
    if not given:
        if at.node.integer("noop_with_empty_axes", 0):
            return (at.main,)
        given = tuple(range(rank))
    return _reduced(at, given, rank)


def _best_along(at: Step) -> tuple[int | None, ...]:
    return _reduced(at, (at.node.integer("axis", 0),), len(at.shape(0)))


def _reduced(at: Step, axes: tuple[int, ...], rank: int) -> tuple[int | None, ...]:
    at.apart_from(at.main, axes, rank, "reduces")
    if at.node.integer("keepdims", 1):
        return (at.main,)
    return (at.main - sum(axis % rank < at.main for axis in axes),)


def _largest_along(at: Step) -> tuple[int | None, ...]:
    at.alone(0)
    at.apart_from(at.main, (at.node.integer("axis", -1),), len(at.shape(0)), "sorts")
    return (at.main,)


def _scaled(at: Step) -> tuple[int | None, ...]:
    """Follow a conversion to or from integers, with scales for all or along an axis."""
    at.alone(0)
    if len(at.shape(1)):
        at.apart_from(at.main, (at.node.integer("axis", 1),), len(at.shape(0)), "scales")
    return (at.main,)


OUTERMOST = (
    "AveragePool", "CausalConvWithState", "Conv", "ConvInteger", "ConvTranspose", "DeformConv",
    "DepthToSpace", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GroupNormalization",
    "InstanceNormalization", "LRN", "LpPool", "QLinearConv", "SpaceToDepth",
)  # fmt: skip

REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip

RULES: Rules = {
    **movement.RULES,
    **products.RULES,
    **dict.fromkeys(OUTERMOST, _outermost),
    **dict.fromkeys(REDUCTIONS, _over_axes),
    **dict.fromkeys(("ArgMax", "ArgMin"), _best_along),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _softmax),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _layer_norm),
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), _scaled),
    "BatchNormalization": _normalized_by_batch,
    "Identity": _elementwise,
    "LpNormalization": _norm_along,
    "MaxPool": _largest_in_windows,
    "TopK": _largest_along,
}
