"""Products and convolutions of the domain com.microsoft, with what they have fused."""

from tightship.frontend.onnx.contrib.activations import activated
from tightship.frontend.onnx.contrib.spelling import Spelling


def fused_matmul(s: Spelling) -> None:
    """Operands may be transposed, and the product multiplied by `alpha`."""
    s.refuse_attributes({"transBatchA": 0, "transBatchB": 0})
    left, right = (_turned(s, index, name) for index, name in ((0, "transA"), (1, "transB")))
    product = s("MatMul", left, right)
    alpha = s.number("alpha", 1.0)
    s.give(0, product if alpha == 1.0 else s("Mul", product, s.like(alpha, s.input(0))))


def _turned(s: Spelling, index: int, attribute: str) -> str:
    name = s.input(index)
    rank = len(s.shape(name))
    if not s.integer(attribute, 0) or rank < 2:
        return name
    return s("Transpose", name, perm=[*range(rank - 2), rank - 1, rank - 2])


def fused_gemm(s: Spelling) -> None:
    """Gemm, then an activation."""
    fused = ("activation", "activation_alpha", "activation_beta", "activation_gamma")
    product = s("Gemm", *s.node.input, **s.others(*fused))
    name = s.text("activation", "")
    alpha, beta = s.number("activation_alpha", 0.01), s.number("activation_beta", 0.5)
    if name == "LeakyRelu":
        s.give(0, s(name, product, alpha=alpha))
    elif name == "HardSigmoid":
        s.give(0, s(name, product, alpha=s.number("activation_alpha", 0.2), beta=beta))
    else:
        s.give(0, activated(s, name, product))


def fused_convolution(s: Spelling) -> None:
    """Conv, then the addition of a residual, then an activation."""
    x = s("Conv", *(s.input(index) for index in range(3)),
          **s.others("activation", "activation_params"))  # fmt: skip
    if s.input(3):
        x = s("Add", x, s.input(3))
    s.give(0, activated(s, s.text("activation", ""), x))


PRODUCTS = {
    "FusedConv": fused_convolution,
    "FusedGemm": fused_gemm,
    "FusedMatMul": fused_matmul,
    "TransposeMatMul": fused_matmul,
}
"""By operator."""
