"""Layouts that the cost table chooses for convolutions whose pixels share sets of the cache."""

import numpy as np
import pytest

from tests.engine.graphs import EVERY_PASS, graph_of, prepared
from tests.models import filled
from tests.processor import HAS_AVX512
from tightship import _core
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.lower.steps.cost import cost_ns, crowded_ns

pytestmark = pytest.mark.skipif(
    not _core.HAS_ONEDNN or not HAS_AVX512, reason="channels last is chosen with AVX-512"
)


def strided(channels: int, length: int, without: tuple[str, ...] = ()) -> CompiledModel:
    """Two convolutions of one dimension that take every second pixel."""
    assert set(without) <= set(EVERY_PASS)
    text = f"""g (float[1, {channels}, {length}] x) => (float[1, {channels}, L] y) {{
        a = Conv <strides = [2]> (x, w) b = Relu (a) y = Conv <strides = [2]> (b, w) }}"""
    return prepared(graph_of(text, w=np.asarray(filled(channels, channels, 3))), without)


@pytest.mark.parametrize(
    ("channels", "length", "layouts"),
    [(512, 399, "blocked"), (480, 399, "library"), (512, 63, "library")],
)
def test_pixels_at_a_multiple_of_a_set_make_blocks_cheaper(
    channels: int, length: int, layouts: str
) -> None:
    """480 channels are no multiple; a row of 63 pixels is short."""
    assert strided(channels, length).key["layouts"] == layouts


def test_blocks_take_no_more_memory_and_cost_less() -> None:
    plain, chosen = strided(512, 399, ("blocked_layouts",)), strided(512, 399)
    assert chosen.plan.arena_bytes <= plain.plan.arena_bytes
    lowered = [each.placement.lowered for each in (plain, chosen)]
    assert 0 == crowded_ns(lowered[1]) < crowded_ns(lowered[0]) < cost_ns(lowered[0])
    assert cost_ns(lowered[1]) < cost_ns(lowered[0])
