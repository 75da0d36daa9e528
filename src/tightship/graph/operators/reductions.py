"""Rows of reductions."""

from functools import partial

from tightship.graph.operators.row import NOT_REAL, ROUNDED, UNWRITTEN, Half, Operator

_row = partial(Operator, shape="rules.reduced", native="reduction.reduction")

ROWS = (
    _row("ArgMax", "1 axis @keepdims select_last_index", half=ROUNDED, shape="indexing.position",
        numpy="reduction.arg_max", native="ranks.position", gradient=NOT_REAL,
        sized="sized.native.position"),
    _row("ArgMin", "1 axis @keepdims select_last_index", half=ROUNDED, shape="indexing.position",
        numpy="reduction.arg_min", native="ranks.position", gradient=NOT_REAL,
        sized="sized.native.position"),
    _row("ReduceL1", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", numpy="reduction.reduce_l1", gradient="reduction.reduce_l1",
        sized="sized.native.reduction"),
    _row("ReduceL2", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", numpy="reduction.reduce_l2", gradient="reduction.reduce_l2",
        sized="sized.native.reduction"),
    _row("ReduceLogSum", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", numpy="reduction.reduce_log_sum", gradient=UNWRITTEN,
        sized="sized.native.reduction"),
    _row("ReduceLogSumExp", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", numpy="reduction.log_sum_exp",
        gradient="reduction.reduce_log_sum_exp", sized="sized.native.reduction"),
    _row("ReduceMax", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", known="evaluate.reduction:max", numpy="reduction.reduce_max",
        objects="sized.reduction.reduced:maximum", gradient="reduction.reduce_extreme",
        sized="sized.native.reduction"),
    _row("ReduceMean", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", numpy="reduction.reduce_mean",
        gradient="reduction.reduce_mean", sized="sized.native.reduction"),
    _row("ReduceMin", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", known="evaluate.reduction:min", numpy="reduction.reduce_min",
        objects="sized.reduction.reduced:minimum", gradient="reduction.reduce_extreme",
        sized="sized.native.reduction"),
    _row("ReduceProd", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", known="evaluate.reduction:prod", lengths="values.product",
        numpy="reduction.reduce_prod",
        objects="sized.reduction.reduced:multiply", gradient=UNWRITTEN,
        sized="sized.native.reduction"),
    _row("ReduceSum", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", known="evaluate.reduction:sum", numpy="reduction.reduce_sum",
        objects="sized.reduction.reduced:add", gradient="reduction.reduce_sum",
        sized="sized.native.reduction"),
    _row("ReduceSumSquare", "2 axes @keepdims noop_with_empty_axes", half=Half.FLOAT32,
        operands="parameters.axes", numpy="reduction.reduce_sum_square",
        gradient="reduction.reduce_sum_square", sized="sized.native.reduction"),
)  # fmt: skip
