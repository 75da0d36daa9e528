"""Normalizations behind an activation, which the kernel of the convolution applies."""

import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, implementations, operators, run
from tests.models import filled
from tightship import _core
from tightship.engine.lower.pipeline import run_passes

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


def net(kernel, body, groups=1, channels=8):
    """A convolution `c` of the input, an activation, a normalization, and `body` up to `y`."""
    s, b, m, v = filled(4, channels)
    pads = ", ".join([str(kernel // 2)] * 4)
    return graph_of(
        f"""g (float[2, {channels}, 9, 9] x) => (float[2, {channels}, 9, 9] y) {{
            c = Conv <pads = [{pads}], group = {groups}> (x, w, b)
            {body} }}""",
        w=filled(channels, channels // groups, kernel, kernel), s=s, b=b, m=m, v=np.abs(v) + 0.1,
    )  # fmt: skip


NORM = "BatchNormalization <epsilon = 0.01>"
CHAINS = {
    "gelu": (f"r = Gelu (c) y = {NORM} (r, s, b, m, v)", "Conv+Gelu+Mul+Add"),
    "a sum behind": (f"r = Relu (c) n = {NORM} (r, s, b, m, v) y = Add (n, x)",
                     "Conv+Relu+Mul+Add+Add"),
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize(("kernel", "groups"), [(1, 1), (5, 1), (1, 2), (3, 8), (7, 8)])
def test_one_kernel_computes_all(kernel, groups, chain):
    body, wanted = CHAINS[chain]
    graph = net(kernel, body, groups)
    assert [operator for operator, *_ in implementations(graph) if operator != "Reorder"] == [
        wanted
    ]
    assert_close(run(graph), expected(graph))
    assert_close(run(graph, ("split_batch_norm",)), expected(graph))


@pytest.mark.parametrize(
    ("kernel", "body"),
    [
        (3, f"r = Relu (c) y = {NORM} (r, s, b, m, v)"),
        (1, f"e = Sigmoid (c) r = Mul (c, e) y = {NORM} (r, s, b, m, v)"),
        (1, f"r = Relu (c) n = {NORM} (r, s, b, m, v) y = Add (n, r)"),
    ],
    ids=["3x3", "a Swish", "an activation that is read twice"],
)
def test_other_normalizations_stay(kernel, body):
    graph = net(kernel, body)
    found = operators(run_passes(graph))
    assert any("BatchNormalization" in each for each in found), found
    assert_close(run(graph), expected(graph))
