import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, node_named, operators, run
from tests.models import filled
from tightship.engine.lower.passes.fold_pad import fold_pad

READERS = {
    "Conv": "y = Conv (p, w)",
    "padded Conv": "y = Conv <pads = [1, 0, 2, 1]> (p, w)",
    "AveragePool": "y = AveragePool <kernel_shape = [3, 3], strides = [2, 2]> (p)",
}


def net(reader, pads=(0, 0, 1, 2, 0, 0, 2, 0), pad="p = Pad (t, pads)", outputs="", dtype="float"):
    number = {"float": np.float32, "double": np.float64}[dtype]
    weights = {"w": filled(2, 2, 3, 3).astype(number)} if "w" in reader else {}
    names = {"pads": np.array(pads), "zero": np.array(0, number), "one": np.array(1, number)}
    used = {n: v for n, v in names.items() if n in pad}
    return graph_of(
        f"g ({dtype}[1, 2, 7, 8] x) => ({dtype}[n, c, h, v] y{outputs}) "
        f"{{ t = Sin (x) {pad} {reader} }}", **weights, **used,
    )  # fmt: skip


@pytest.mark.parametrize("pad", ["p = Pad (t, pads)", "p = Pad (t, pads, zero)"])
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_zeros_around_an_image_become_padding(reader, pad):
    graph = net(reader, pad=pad)
    folded = fold_pad(graph)
    assert operators(folded) == ["Sin", reader.split()[2]]
    assert_close(run(folded), expected(graph))


def test_padding_adds_up():
    folded = fold_pad(net(READERS["padded Conv"]))
    assert node_named(folded, "Conv").attributes["pads"] == (2, 2, 4, 1)


OTHERS = {
    "of ones": net(READERS["Conv"], pad="p = Pad (t, pads, one)"),
    "reflected": net(READERS["Conv"], pad='p = Pad <mode = "reflect"> (t, pads)'),
    "of channels": net("y = AveragePool <kernel_shape = [3, 3]> (p)", (0, 1, 0, 0, 0, 0, 0, 0)),
    "cut": net(READERS["Conv"], (0, 0, -1, 0, 0, 0, 0, 0)),
    "of a maximum": net("y = MaxPool <kernel_shape = [3, 3]> (p)"),
    "around padding not counted":
        net("y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (p)"),
    "read twice": net("y = Conv (p, w) z = Neg (p)", outputs=", float[a, b, d, e] z"),
    "automatic": net('y = Conv <auto_pad = "SAME_UPPER"> (p, w)'),
}  # fmt: skip


@pytest.mark.parametrize("graph", OTHERS.values(), ids=OTHERS)
def test_other_padding_stays(graph):
    assert "Pad" in operators(fold_pad(graph))
