"""Kernel of quantized products of single pixels, and its steps."""

import numpy as np
import pytest

from tests.engine.graphs import prepared
from tests.engine.quantized_graphs import SUM, everywhere, inputs, net
from tightship import _core
from tightship.engine.cache.bounds import Bounds
from tightship.engine.lower import selection
from tightship.engine.lower.selection import lower
from tightship.model import Model

on_onednn = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="other steps are oneDNN's")


@on_onednn
def test_the_result_takes_the_place_of_the_addend(monkeypatch):
    monkeypatch.setattr(selection, "faster_passes", everywhere)
    body = SUM.replace("(r, rs, rz)", "(s, rs, rz)").replace("g =", "s = Abs (r) g =")
    graph = net(
        f"{body} a = Relu (h) y = QuantizeLinear (a, ys, yz)", (np.uint8, np.int8, np.uint8)
    )
    steps = lower(graph).steps
    (sharing,) = next(step for step in steps if step.implementation == "quantized rows").sharing
    assert sharing is not None


@on_onednn
def test_results_do_not_depend_on_how_many_threads_compute_them(monkeypatch):
    monkeypatch.setattr(selection, "faster_passes", everywhere)
    graph = net(f"{SUM} y = QuantizeLinear (h, ys, yz)", outputs=256)
    given, results = inputs(graph), []
    for threads in (1, 2, 3):
        with Model(prepared(graph, threads=threads), Bounds()) as model:
            results.append(model.run(given)["y"])
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def kernel(lengths=(3, 8, 64), result=(0, 255), adds=True):
    return _core.NativeKernel.quantized_rows(
        list(lengths), result, adds, (-128, 127), [1, 1, 0], False
    )


def test_nothing_beside_the_result_is_written():
    assert [high for _, high in kernel().reach()] == [24, 512, 256, 256, 192, 192]
    assert [high for _, high in kernel(adds=False).reach()] == [24, 512, 256, 256, 192]
    assert kernel().scratch_bytes(2) == 0


@pytest.mark.parametrize(
    "given",
    [
        {"lengths": (3, 8, 63)},
        {"lengths": (3, 7, 64)},
        {"lengths": (0, 8, 64)},
        {"lengths": (1 << 40, 1 << 10, 1 << 20)},
        {"lengths": (3, 1 << 20, 64)},
        {"result": (0, 300)},
        {"result": (3, 2)},
    ],
)
def test_impossible_numbers_are_refused(given):
    with pytest.raises(ValueError, match="a kernel"):
        kernel(**given)
