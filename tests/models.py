"""Small models, written as ONNX text with their weights filled in."""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper, parser

Array = NDArray[np.generic]

HEADER = '<ir_version: 10, opset_import: ["": 20]>'


def parse(text: str, /, header: str = HEADER, **weights: Array) -> ModelProto:
    """A model from its text, initializers added by name."""
    model = parser.parse_model(f"{header}\n{text}")
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in weights.items())
    return model


def filled(*shape: int) -> Array:
    """Floats from a seed that depends on the shape only."""
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def mlp(width: int = 16) -> ModelProto:
    """Two dense layers over a symbolic `batch`."""
    return parse(
        f"""mlp (float[batch, {width}] x) => (float[batch, 4] y) {{
            h = Gemm (x, w1, b1)
            r = Relu (h)
            y = MatMul (r, w2)
        }}""",
        w1=filled(width, width),
        b1=filled(width),
        w2=filled(width, 4),
    )


def conv_net() -> ModelProto:
    """A convolution, a pooling and a reshape whose target is computed from shapes."""
    return parse(
        """conv_net (float[1, 3, 8, 8] x) => (float[1, 256] y) {
            c = Conv <pads = [1, 1, 1, 1]> (x, w)
            r = Relu (c)
            s = Shape <start = 0, end = 1> (r)
            t = Concat <axis = 0> (s, rest)
            y = Reshape (r, t)
        }""",
        w=filled(4, 3, 3, 3),
        rest=np.array([-1], np.int64),
    )


def if_model() -> ModelProto:
    """Two branches that read `x` from around them and give shapes that differ in one axis."""
    return parse(
        """choice (bool flag, float[2, 3] x) => (float[2, n] y) {
            y = If (flag) <
                then_branch = left () => (float[2, 3] a) { a = Neg (x) },
                else_branch = right () => (float[2, 6] b) { b = Concat <axis = 1> (x, x) }
            >
        }"""
    )


def loop_model(trips: int = 5) -> ModelProto:
    """A sum over `trips` turns, each of which is also stacked."""
    return parse(
        """repeat (float[2] x) => (float[2] last, float[n, 2] all) {
            last, all = Loop (trips, yes, x) <
                body = turn (int64 i, bool going, float[2] s) => (bool on, float[2] t, float[2] u) {
                    on = Identity (going)
                    t = Add (s, x)
                    u = Identity (t)
                }
            >
        }""",
        trips=np.array(trips, np.int64),
        yes=np.array(True),
    )


def with_external_data(folder: Path) -> Path:
    """`mlp` with every weight in `weights.bin` beside it."""
    path = folder / "model.onnx"
    onnx.save(
        mlp(),
        path,
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=0,
    )
    return path


def with_hole(folder: Path, size_bytes: int, *, external: bool = False) -> Path:
    """A model whose weight `w` is a hole in a sparse file, its bytes never written.

    Args:
        folder: Where to write it.
        size_bytes: Of the weight, a multiple of 4.
        external: Whether the weight lies in a file of its own.
    """
    model = parse("hole (float[1] x) => (float[n] y) { y = Add (x, w) }")
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[size_bytes // 4])
    path = folder / "model.onnx"
    if external:
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="hole.bin")
        model.graph.initializer.append(weight)
        path.write_bytes(model.SerializeToString())
        _write_hole(folder / "hole.bin", b"", size_bytes)
        return path
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    tensor = weight.SerializeToString() + head(9, size_bytes)
    initializer = head(5, len(tensor) + size_bytes) + tensor
    start = model.SerializeToString() + head(7, len(graph) + len(initializer) + size_bytes)
    _write_hole(path, start + graph + initializer, size_bytes)
    return path


def _write_hole(path: Path, start: bytes, size_bytes: int) -> None:
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + size_bytes)


def head(number: int, size_bytes: int) -> bytes:
    """Tag and length of a length-delimited protobuf field below number 16."""
    head = bytearray([number << 3 | 2])
    while size_bytes >= 0x80:
        head.append(size_bytes & 0x7F | 0x80)
        size_bytes >>= 7
    return bytes([*head, size_bytes])


def gated_scan(steps: int | str = 6, batch: int = 4, width: int = 16) -> ModelProto:
    """A gated unit as a Scan over `steps`, with products by captured constants."""
    state, whole = f"float[{batch}, {width}]", f"float[{steps}, {batch}, {width}]"
    return parse(
        f"""gated ({state} h, {whole} x) => ({state} last, {whole} all) {{
            one = Constant <value: tensor = float {{1}}> ()
            last, all = Scan <
                num_scan_inputs = 1,
                body = iteration ({state} s, {state} a) => ({state} t, {state} y) {{
                    az = MatMul (a, w)
                    sz = MatMul (s, u)
                    zz = Add (az, sz)
                    z = Sigmoid (zz)
                    n = Tanh (az)
                    iz = Sub (one, z)
                    zn = Mul (iz, n)
                    zs = Mul (z, s)
                    t = Add (zn, zs)
                    y = Relu (t)
                }}
            > (h, x)
        }}""",
        w=filled(width, width) / width**0.5,
        u=filled(width, width).T / width**0.5,
    )
