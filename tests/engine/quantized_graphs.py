"""Graphs of quantized convolutions of single pixels, with sums."""

import numpy as np

from tests.engine.graphs import graph_of

IMAGE = (2, 8, 5, 7)
OUTPUTS = 64
PRODUCT = (
    "d = DequantizeLinear (x, xs, xz) w = DequantizeLinear <axis = 0> (q, ws, wz)"
    "b = DequantizeLinear <axis = 0> (p, bs, bz) c = Conv (d, w, b)"
)
SUM = (
    f"{PRODUCT} e = QuantizeLinear (c, cs, cz) f = DequantizeLinear (e, cs, cz)"
    "g = DequantizeLinear (r, rs, rz) h = Add (f, g)"
)


def net(body, dtypes=(np.uint8, np.uint8, np.uint8), outputs=OUTPUTS, **weights):
    """Nodes from an image `x` in uint8 to a `y`; dtypes of the convolution, addend `r` and `y`."""
    random = np.random.default_rng(0)
    middle, addend, result = dtypes
    q = random.integers(-127, 128, (outputs, IMAGE[1], 1, 1), np.int8)
    types = [np.dtype(each).name for each in dtypes]
    shape = f"2, {outputs}, 5, 7"
    named = {
        "xs": np.float32(0.02), "xz": np.uint8(121), "cs": np.float32(0.031), "cz": middle(9),
        "rs": np.float32(0.017), "rz": addend(11), "ys": np.float32(0.0413), "yz": result(5),
        "q": q, "ws": random.uniform(0.002, 0.01, outputs).astype(np.float32),
        "wz": np.zeros(outputs, np.int8), "p": random.integers(-5000, 5000, outputs, np.int32),
        "bs": np.full(outputs, 0.0001, np.float32), "bz": np.zeros(outputs, np.int32), **weights,
    }  # fmt: skip
    declared = f"uint8[2, 8, 5, 7] x, {types[1]}[{shape}] r"
    return graph_of(f"g ({declared}) => ({types[2]}[2, o, i, j] y) {{ {body} }}", **named)


def inputs(graph):
    random = np.random.default_rng(1)
    found = {}
    for name in graph.inputs:
        value = graph.value(name)
        info = np.iinfo(value.dtype.numpy)
        found[name] = random.integers(
            info.min, info.max + 1, value.static_shape, dtype=value.dtype.numpy
        )
    return found


def everywhere(*, narrow):
    """Take the kernel on every processor."""
    assert not narrow
    return frozenset({"multiply_quantized"})
