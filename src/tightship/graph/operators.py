"""Which ONNX operators write over an input, and which only show it under another shape."""

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
"""An element of the output depends on the elements of the inputs at its place."""

NORMALIZING = frozenset([
    "BatchNormalization", "GroupNormalization", "Hardmax", "InstanceNormalization",
    "LayerNormalization", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization",
    "RMSNormalization", "SimplifiedLayerNormalization", "Softmax",
])  # fmt: skip
"""Rows of the first input are read before they are written."""

LOSSES = frozenset({"SoftmaxCrossEntropyLoss"})
"""The second output, the logarithms of the probabilities, is made of rows of the first input."""

RESHAPING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""The output is the first input's bytes."""

CUTTING = frozenset({"Slice", "Split"})
"""Outputs are stretches of the first input, where nothing but axes of length 1 lies outside."""

UPDATES = frozenset({"AdamUpdate", "MomentumUpdate", "RunningUpdate", "SgdUpdate"})
"""Of the domain that gradients are written in: a weight and its state, over what they were."""

ALIASING = ELEMENTWISE | NORMALIZING | LOSSES | RESHAPING | CUTTING | {"Concat"}
"""All operators of ONNX whose outputs are, or may be, in the bytes of an input."""
