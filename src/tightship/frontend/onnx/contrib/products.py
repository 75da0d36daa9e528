"""Products and convolutions of the domain com.microsoft, with fused operators."""

from tightship.frontend.onnx.contrib.activations import activated
from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import Translation


def fused_matmul(s: Pattern) -> None:
    """Decompose a product of operands that may be transposed, times `alpha`."""
    left, right = (_turned(s, index, name) for index, name in ((0, "transA"), (1, "transB")))
    product = s("MatMul", left, right)
    alpha = s.number("alpha")
    s.give(0, product if alpha == 1.0 else s("Mul", product, s.like(alpha, s.input(0))))


def _turned(s: Pattern, index: int, attribute: str) -> str:
    name = s.input(index)
    rank = len(s.shape(name))
    if not s.integer(attribute) or rank < 2:
        return name
    return s("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])


def fused_gemm(s: Pattern) -> None:
    """Decompose Gemm and an activation."""
    product = s("Gemm", *s.inputs(), **s.present("alpha", "beta", "transA", "transB"))
    name = s.text("activation")
    if name == "LeakyRelu":
        s.give(0, s(name, product, alpha=s.number("activation_alpha", 0.01)))
    elif name == "HardSigmoid":
        alpha, beta = s.number("activation_alpha", 0.2), s.number("activation_beta", 0.5)
        s.give(0, s(name, product, alpha=alpha, beta=beta))
    else:
        s.give(0, activated(s, name, product))


def fused_convolution(s: Pattern) -> None:
    """Decompose Conv, the addition of a residual and an activation."""
    x = s("Conv", *(s.input(index) for index in range(3)),
          **s.present(*_WINDOW))  # fmt: skip
    if s.input(3):
        x = s("Add", x, s.input(3))
    s.give(0, activated(s, s.text("activation"), x, s.numbers("activation_params")))


_WINDOW = {
    "auto_pad": "NOTSET", "dilations": None, "group": 1, "kernel_shape": None, "pads": None,
    "strides": None,
}  # fmt: skip
_FACTORS = {"alpha": 1.0, "transA": 0, "transB": 0}
PRODUCTS = {
    "FusedConv": Translation(
        fused_convolution, "X W B? Z?", "Y", {**_WINDOW, "activation": "", "activation_params": ()}
    ),
    "FusedGemm": Translation(
        fused_gemm,
        "A B C?",
        "Y",
        {
            **_FACTORS, "beta": 1.0, "activation": "", "activation_alpha": None,
            "activation_beta": None,
        },
    ),
    "FusedMatMul": Translation(
        fused_matmul, "A B", "Y", _FACTORS, only={"transBatchA": (0,), "transBatchB": (0,)}
    ),
    "TransposeMatMul": Translation(fused_matmul, "A B", "Y", _FACTORS),
}  # fmt: skip
"""Translations by operator."""
