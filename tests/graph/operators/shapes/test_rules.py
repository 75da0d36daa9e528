"""Each rule gives the shapes that reading the model for other lengths gives."""

import re

import numpy as np
import pytest

from tests.models import filled, parse
from tightship.engine.lower.selection import rewritten
from tightship.engine.template import template_of
from tightship.frontend.onnx import open_bytes

CONSTANTS = {
    "w_rnn": filled(1, 2, 4),
    "w_gru": filled(1, 6, 4),
    "w_lstm": filled(1, 8, 4),
    "r_rnn": filled(1, 2, 2),
    "r_gru": filled(1, 6, 2),
    "r_lstm": filled(1, 8, 2),
    "w_both": filled(2, 2, 4),
    "r_both": filled(2, 2, 2),
    "tall": np.zeros((2, 4), np.int64),
    "pairs": np.array([[0, 0], [0, 1]]),
    "rows": filled(2, 4),
    "pads": np.array([0, 1, 2, 0, 0, 3]),
    "ends": np.array([2, 1]),
    "last": np.array([-1]),
    "sizes": np.float32([1, 2, 0.5]),
    "repeats": np.array([1, 1, 3]),
    "two": np.array([2]),
    "axis": np.array(1),
    "depth": np.array(5),
    "off_on": np.float32([0, 1]),
    "minus": np.array([-1, -1, -1]),
    "ones": np.array([1, 1, 1]),
}
ROW, STACK, IMAGE, TALL = "1, 4, n", "1, n, 4", "1, 4, 8, n", "n, 4"
NEWER = '<ir_version: 10, opset_import: ["": 26]>'
BODIES = {
    "y = ArgMax <axis = 1> (x)": ROW,
    "y = ArgMin <axis = 2, keepdims = 0> (x)": STACK,
    "c = BitCast <to = 6> (x)  y = BitCast <to = 1> (c)": ROW,
    "y = CumProd (x, axis)": ROW,
    "y = EyeLike (x)": TALL,
    "y = Bernoulli (x)": ROW,
    "y = RandomNormalLike (x)": ROW,
    "y = RandomUniformLike (x)": ROW,
    'y = AveragePool <kernel_shape = [3], strides = [2], auto_pad = "SAME_UPPER"> (x)': ROW,
    "y = DepthToSpace <blocksize = 2> (x)": IMAGE,
    'y = Einsum <equation = "bij, bkj -> bik"> (x, x)': STACK,
    'y = Einsum <equation = "bij->jb"> (x)': STACK,
    "y = GRU <hidden_size = 2> (x, w_gru, r_gru)": STACK,
    "y = GatherElements <axis = 0> (x, tall)": TALL,
    "y = GatherND (x, pairs)": STACK,
    "y = GlobalLpPool (x)": IMAGE,
    "y = LSTM <hidden_size = 2, layout = 1> (x, w_lstm, r_lstm)": STACK,
    'a, y, b = LSTM <hidden_size = 2, direction = "reverse"> (x, w_lstm, r_lstm)': STACK,
    "y = LpPool <kernel_shape = [2], strides = [2]> (x)": ROW,
    'y = MaxPool <kernel_shape = [2], strides = [3], auto_pad = "SAME_LOWER"> (x)': ROW,
    "i = Cast <to = 7> (x)  y = OneHot <axis = 0> (i, depth, off_on)": "n",
    "y = Pad (x, pads)": ROW,
    "y = MaxPool <kernel_shape = [3], strides = [2], ceil_mode = 1, pads = [1, 0]> (x)": ROW,
    "y = AveragePool <kernel_shape = [2], strides = [2], ceil_mode = 1> (x)": ROW,
    'y = Pad <mode = "edge"> (x, ends, , last)': ROW,
    'y = RNN <hidden_size = 2, direction = "bidirectional"> (x, w_both, r_both)': STACK,
    "y = Resize (x, , sizes)": ROW,
    "y = ScatterND (x, pairs, rows)": STACK,
    "s = Size (x)  t = Unsqueeze (s, first)  y = Reshape (x, t)": ROW,
    "y = SpaceToDepth <blocksize = 2> (x)": IMAGE,
    "y = Tile (x, repeats)": ROW,
    "v, y = TopK <axis = 1> (x, two)": STACK,
    "s = Shape (x)  e = Equal (s, minus)  t = Where (e, ones, s)  y = Expand (x, t)": ROW,
}


@pytest.mark.parametrize("body", BODIES)
def test_a_rule_says_what_reading_says(body):
    shape, kind = BODIES[body], "int64" if re.search("y = Arg|v, y", body) else "float"
    constants = {"first": np.array([0])} | CONSTANTS
    used = {n: value for n, value in constants.items() if re.search(rf"\b{n}\b", body)}
    text = f"g (float[{shape}] x) => ({kind} y) {{ {body} }}"
    header = {} if not re.search("BitCast|CumProd", body) else {"header": NEWER}
    opened = open_bytes(parse(text, **header, **used).SerializeToString())

    def shapes(length):
        return {"x": tuple(int(d) if d != "n" else length for d in shape.split(", "))}

    template = template_of(opened.graph(shapes(12)), opened.declared, rewritten)
    assert template is not None
    held = 0
    for length in range(3, 30):
        if (found := template.graph(shapes(length))) is not None:
            held += 1
            assert found.value("y") == opened.graph(shapes(length)).value("y")
    assert held >= 13
