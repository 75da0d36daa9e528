"""The operator table: a row for each operator, which says what it is and who has its bodies."""

from tightship.graph.operators.table import body, find, named, row_of, rows

ELEMENTWISE = frozenset([
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh",
    "Div", "Dropout", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater",
    "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less",
    "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "Not", "Or",
    "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh",
    "ThresholdedRelu", "Where", "Xor",
])  # fmt: skip
"""Operators whose output elements depend on the input elements at the same position."""

NORMALIZING = frozenset([
    "BatchNormalization", "GroupNormalization", "Hardmax", "InstanceNormalization",
    "LayerNormalization", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization",
    "RMSNormalization", "SimplifiedLayerNormalization", "Softmax",
])  # fmt: skip
"""Operators that read rows of the first input before they write them."""

LOSSES = frozenset({"SoftmaxCrossEntropyLoss"})
"""Losses whose second output, the log probabilities, consists of rows of the first input."""

RESHAPING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators whose output is the first input's bytes."""

CUTTING = frozenset({"Slice", "Split"})
"""Operators whose outputs are intervals of the first input, if only axes of length 1 precede."""

UPDATES = frozenset({"AdamUpdate", "MomentumUpdate", "RunningUpdate", "SgdUpdate"})
"""Operators of the training domain that update a weight and its state in place."""

ALIASING = ELEMENTWISE | NORMALIZING | LOSSES | RESHAPING | CUTTING | {"Concat"}
"""All operators of ONNX whose outputs are, or may be, in the bytes of an input."""

__all__ = [
    "ALIASING", "CUTTING", "ELEMENTWISE", "LOSSES", "NORMALIZING", "RESHAPING", "UPDATES",
    "body", "find", "named", "row_of", "rows",
]  # fmt: skip
