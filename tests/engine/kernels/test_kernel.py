"""No kernel allocates what grows with its tensors."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from tests.engine.kernels.node_suite import poisoned, scratch_for
from tests.engine.kernels.typed import Typed, typed
from tightship.graph.operators import named, rows

LIMIT_BYTES = 128 * 1024
"""NumPy's own buffers, 8192 elements of three float32 operands, and some Python objects; a
tensor here takes 1 MiB, a mask of one 256 KiB."""
RANDOM = np.random.default_rng(7)
UFUNCS = {
    name: getattr(np, row.numpy.partition(":")[2])
    for name, row in rows().items()
    if row.numpy.startswith("elementwise.ufunc:")
}
ACTIVATIONS = [name for name, row in rows().items() if row.numpy.startswith("activation.")]
BITS = frozenset(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"))
LOGIC = frozenset(("And", "Not", "Or", "Xor"))


def f32(*shape: int) -> Any:
    return RANDOM.uniform(0.1, 0.9, shape).astype(np.float32)


def i64(high: int, *shape: int) -> Any:
    return RANDOM.integers(-high, high, shape)


def ints(*elements: int) -> Any:
    return np.array(elements, np.int64)


X = f32(1, 64, 64, 64)
WIDE = f32(512, 512)
BYTES = RANDOM.integers(0, 255, (1024, 1024)).astype(np.uint8)
SCALE, ZERO = np.float32(0.1).reshape(()), np.uint8(3).reshape(())
SQUARE8 = BYTES[:512, :512].copy()


def _elementwise(name: str) -> Typed:
    ufunc = UFUNCS[name]
    x = X > 0.5 if name in LOGIC else (X * 100).astype(np.int32) if name in BITS else X
    if name == "Acosh":
        x = x + 1
    return typed(name, *[x] * ufunc.nin)


def _recurrent(name: str, gates: int, states: int) -> Typed:
    """Bidirectional, clipped, with lengths; each state takes 512 KiB."""
    directions, batch, width, size = 2, 256, 64, 256
    return typed(
        name,
        f32(8, batch, width),
        f32(directions, gates * size, width),
        f32(directions, gates * size, size),
        f32(directions, 2 * gates * size),
        np.full(batch, 5, np.int32),
        *[f32(directions, batch, size)] * states,
        outputs=1 + states,
        direction="bidirectional",
        hidden_size=size,
        clip=3.0,
    )


CASES = {
    **{name: [_elementwise(name)] for name in UFUNCS},
    **{name: [typed(name, X, version=24)] for name in ACTIVATIONS},
    "ArgMax": [typed("ArgMax", X, axis=1), typed("ArgMax", X, axis=3, select_last_index=1)],
    "ArgMin": [typed("ArgMin", X, axis=1), typed("ArgMin", X, axis=3)],
    "AveragePool": [typed("AveragePool", X, kernel_shape=[3, 3], pads=[1, 1, 1, 1])],
    "BatchNormalization": [typed("BatchNormalization", X, *[f32(64)] * 4)],
    "BitCast": [typed("BitCast", X, version=26, to=6)],
    "BitShift": [typed("BitShift", SQUARE8, SQUARE8, direction="LEFT")],
    "Cast": [typed("Cast", X, to=10), typed("Cast", X, to=17)],
    "CastLike": [typed("CastLike", X, np.zeros(1, np.int32))],
    "Clip": [typed("Clip", X, f32(1)[0:1].reshape(()), None)],
    "Concat": [typed("Concat", X, X, axis=2)],
    "Constant": [typed("Constant", value=WIDE)],
    "ConstantOfShape": [typed("ConstantOfShape", ints(512, 512), value=f32(1))],
    "Conv": [
        typed("Conv", X, f32(64, 64, 3, 3), f32(64), pads=[1, 1, 1, 1]),
        typed("Conv", X, f32(64, 1, 3, 3), group=64, strides=[2, 2]),
        typed("Conv", X, f32(32, 64, 1, 1)),
    ],
    "ConvTranspose": [typed("ConvTranspose", X, f32(64, 32, 2, 2), f32(32), strides=[2, 2])],
    "CumProd": [typed("CumProd", X, ints(1).reshape(()), version=26, exclusive=1)],
    "CumSum": [typed("CumSum", X, ints(1).reshape(()), reverse=1)],
    "DepthToSpace": [typed("DepthToSpace", X, blocksize=4)],
    "DequantizeLinear": [typed("DequantizeLinear", BYTES, SCALE, ZERO)],
    "Div": [typed("Div", X, X), typed("Div", i64(99, 512, 512), ints(7))],
    "Dropout": [typed("Dropout", X, outputs=2)],
    "DynamicQuantizeLinear": [typed("DynamicQuantizeLinear", X, outputs=3)],
    "Einsum": [typed("Einsum", f32(8, 128, 64), f32(8, 64, 128), equation="bij,bjk->bik")],
    "Expand": [typed("Expand", f32(512, 1), ints(512, 512))],
    "EyeLike": [typed("EyeLike", WIDE, k=3)],
    "Flatten": [typed("Flatten", X)],
    "Gather": [
        typed("Gather", WIDE, i64(512, 512)),
        typed("Gather", WIDE, i64(512, 512).astype(np.int32), axis=1),
    ],
    "GatherElements": [typed("GatherElements", WIDE, i64(512, 512, 512), axis=1)],
    "GatherND": [typed("GatherND", WIDE, i64(512, 512, 512, 2))],
    "Gemm": [typed("Gemm", WIDE, WIDE, WIDE, transB=1, alpha=0.5, beta=0.5)],
    "GRU": [_recurrent("GRU", 3, 1)],
    "GlobalAveragePool": [typed("GlobalAveragePool", X)],
    "GlobalMaxPool": [typed("GlobalMaxPool", X)],
    "GroupNormalization": [
        typed("GroupNormalization", X, f32(64), f32(64), num_groups=8, like=[X])
    ],
    "Hardmax": [typed("Hardmax", X, axis=1)],
    "Identity": [typed("Identity", X)],
    "InstanceNormalization": [typed("InstanceNormalization", X, f32(64), f32(64))],
    "IsInf": [typed("IsInf", X), typed("IsInf", X, detect_negative=0)],
    "LRN": [typed("LRN", X, size=5)],
    "LSTM": [_recurrent("LSTM", 4, 2)],
    "LayerNormalization": [typed("LayerNormalization", WIDE, f32(512), f32(512))],
    "LogSoftmax": [typed("LogSoftmax", X, axis=1)],
    "LpNormalization": [typed("LpNormalization", X, axis=1)],
    "LpPool": [typed("LpPool", X, kernel_shape=[2, 2])],
    "MatMul": [typed("MatMul", WIDE, WIDE)],
    "MatMulInteger": [typed("MatMulInteger", SQUARE8, SQUARE8, ZERO, ZERO)],
    "Max": [typed("Max", X, X, f32(64, 1, 1))],
    "MaxPool": [typed("MaxPool", X, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)],
    "MaxUnpool": [
        typed(
            "MaxUnpool",
            f32(1, 64, 32, 32),
            np.arange(0, 262144, 4).reshape(1, 64, 32, 32),
            kernel_shape=[2, 2],
            strides=[2, 2],
        )
    ],
    "Mean": [typed("Mean", X, X, f32(64, 1, 1))],
    "Min": [typed("Min", X, X, f32(64, 1, 1))],
    "Mod": [typed("Mod", X, X, fmod=1)],
    "OneHot": [typed("OneHot", i64(512, 512), ints(512), f32(2))],
    "PRelu": [typed("PRelu", X, f32(64, 1, 1))],
    "Pad": [
        typed("Pad", X, ints(0, 0, 3, 3, 0, 0, 3, 3), mode=mode)
        for mode in ("constant", "edge", "reflect", "wrap")
    ],
    "Pow": [typed("Pow", X, f32(1)), typed("Pow", X, ints(2))],
    "QLinearMatMul": [
        typed("QLinearMatMul", SQUARE8, SCALE, ZERO, SQUARE8, SCALE, ZERO, SCALE, ZERO)
    ],
    "QuantizeLinear": [typed("QuantizeLinear", WIDE, f32(512), None, axis=0)],
    "RMSNormalization": [typed("RMSNormalization", WIDE, f32(512), version=23)],
    "RNN": [_recurrent("RNN", 1, 1)],
    "Range": [typed("Range", *[np.float32(v).reshape(()) for v in (0, 262144, 1)])],
    **{
        name: [typed(name, X, ints(1, 3)), typed(name, X, ints(0))]
        for name in named("numpy")
        if name.startswith("Reduce")
    },
    "Reshape": [typed("Reshape", X, ints(512, 512))],
    "Resize": [
        typed("Resize", X, None, np.array([1, 1, 2, 1.5], np.float32), mode=mode)
        for mode in ("nearest", "linear", "cubic")
    ],
    "Scatter": [typed("Scatter", WIDE, i64(512, 512, 512), WIDE, version=9, axis=1)],
    "ScatterElements": [
        typed("ScatterElements", WIDE, i64(512, 512, 512), WIDE, axis=0, reduction=reduction)
        for reduction in ("none", "add")
    ],
    "ScatterND": [typed("ScatterND", WIDE, i64(512, 512, 1), WIDE)],
    "Shape": [typed("Shape", X)],
    "Size": [typed("Size", X)],
    "Slice": [typed("Slice", X, ints(-1), ints(0), ints(2), ints(-2))],
    "Softmax": [typed("Softmax", X, axis=1), typed("Softmax", X, version=11)],
    "SpaceToDepth": [typed("SpaceToDepth", X, blocksize=4)],
    "Split": [typed("Split", X, ints(30, 34), axis=1, outputs=2)],
    "Squeeze": [typed("Squeeze", X, ints(0))],
    "Sum": [typed("Sum", X, X, f32(64, 1, 1))],
    "Tile": [typed("Tile", f32(64, 1, 64), ints(2, 64, 1))],
    "Transpose": [typed("Transpose", X, perm=[0, 2, 3, 1])],
    "Trilu": [typed("Trilu", WIDE, ints(2).reshape(()))],
    "Unsqueeze": [typed("Unsqueeze", X, ints(0))],
    "Upsample": [typed("Upsample", X, np.array([1, 1, 2, 2], np.float32), version=9)],
    "Where": [typed("Where", X > 0.5, X, f32(64, 1, 1))],
}


def test_every_operator_is_measured():
    assert set(CASES) == named("numpy")


@pytest.mark.parametrize("operator", sorted(CASES))
def test_a_kernel_allocates_nothing_that_grows(operator: str):
    for case in CASES[operator]:
        kernel = case.kernel
        outputs = [poisoned(array) for array in case.like]
        scratch = scratch_for(kernel)
        kernel.run(case.inputs, outputs, scratch)
        tracemalloc.start()
        try:
            kernel.run(case.inputs, outputs, scratch)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < LIMIT_BYTES, f"{kernel.name} allocates {peak} bytes"


@pytest.mark.parametrize("operator", sorted(CASES))
def test_scratch_is_of_the_size_of_what_the_kernel_reads_and_writes(operator: str):
    for case in CASES[operator]:
        touched = sum(x.nbytes for x in (*case.inputs, *case.like) if x is not None)
        assert case.kernel.scratch_bytes <= 6 * touched + (1 << 20)
