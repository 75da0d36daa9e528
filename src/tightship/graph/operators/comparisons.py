"""Rows of comparisons, logic and bits."""

from functools import partial

from tightship.graph.operators.row import NOT_REAL, ROUNDED, Category, Half, Operator

_row = partial(
    Operator,
    category=Category.ELEMENTWISE,
    shape="rules.elementwise",
    native="elementwise.elementwise",
    gradient=NOT_REAL,
)

ROWS = (
    _row("And", "2 axis @broadcast", known="evaluate.binary:logical_and",
        numpy="elementwise.ufunc:logical_and"),
    _row("BitShift", "2 direction", numpy="elementwise.bit_shift", native="elementwise.bit_shift"),
    _row("BitwiseAnd", "2", numpy="elementwise.ufunc:bitwise_and"),
    _row("BitwiseNot", "1", shape="rules.same", numpy="elementwise.ufunc:invert"),
    _row("BitwiseOr", "2", numpy="elementwise.ufunc:bitwise_or"),
    _row("BitwiseXor", "2", numpy="elementwise.ufunc:bitwise_xor"),
    _row("Equal", "2 axis @broadcast", half=Half.FLOAT32, known="evaluate.binary:equal",
        lengths="values.equal", numpy="elementwise.ufunc:equal"),
    _row("Greater", "2 axis @broadcast", half=Half.FLOAT32, known="evaluate.binary:greater",
        numpy="elementwise.ufunc:greater"),
    _row("GreaterOrEqual", "2", half=Half.FLOAT32, known="evaluate.binary:greater_equal",
        numpy="elementwise.ufunc:greater_equal"),
    _row("IsInf", "1 detect_negative detect_positive", half=ROUNDED, shape="rules.same",
        numpy="elementwise.is_infinite", native="elementwise.is_infinite"),
    _row("IsNaN", "1", half=ROUNDED, shape="rules.same", numpy="elementwise.ufunc:isnan"),
    _row("Less", "2 axis @broadcast", half=Half.FLOAT32, known="evaluate.binary:less",
        numpy="elementwise.ufunc:less"),
    _row("LessOrEqual", "2", half=Half.FLOAT32, known="evaluate.binary:less_equal",
        numpy="elementwise.ufunc:less_equal"),
    _row("Not", "1", shape="rules.same", known="evaluate.unary:logical_not",
        numpy="elementwise.ufunc:logical_not"),
    _row("Or", "2 axis @broadcast", known="evaluate.binary:logical_or",
        numpy="elementwise.ufunc:logical_or"),
    _row("Where", "3", half=Half.MOVED, known="evaluate.where", lengths="values.where",
        numpy="elementwise.where_kernel",
        objects="sized.elementwise.where", gradient="elementwise.where"),
    _row("Xor", "2 axis @broadcast", known="evaluate.binary:logical_xor",
        numpy="elementwise.ufunc:logical_xor"),
)  # fmt: skip
