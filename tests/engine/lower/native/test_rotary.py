import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import lowered, run
from tests.engine.kernels.typed import typed
from tests.engine.lower.native.test_sequence import check, graph_of, seeded
from tests.engine.native_tier import run_natively
from tightship import _core
from tightship.errors import InputError


@given(st.booleans(), st.booleans(), st.booleans(), st.sampled_from([0, 4, 20]), st.integers(1, 3))
@settings(max_examples=60)
def test_pairs_are_turned_by_their_position(interleaved, flat, given_positions, part, threads):
    batch, heads, steps, row = 2, 3, 5, 20
    x = seeded(batch, steps, heads * row) if flat else seeded(batch, heads, steps, row)
    pairs = (part or row) // 2
    angles = seeded(9, pairs) if given_positions else seeded(batch, steps, pairs)
    positions = [np.random.default_rng(0).integers(0, 9, (batch, steps))] if given_positions else []
    case = typed(
        "RotaryEmbedding", x, np.cos(angles), np.sin(angles), *positions,
        interleaved=int(interleaved), num_heads=heads, rotary_embedding_dim=part, version=23,
        like=[x],
    )  # fmt: skip
    check(case, threads, rtol=1e-5)


@pytest.mark.parametrize("position", [-1, 9])
def test_a_position_beyond_the_cache_is_refused(position: int):
    angles, positions = seeded(9, 2), np.array([[0, position]])
    case = typed("RotaryEmbedding", seeded(1, 1, 2, 4), angles, angles, positions, version=23,
                 like=[seeded(1, 1, 2, 4)])  # fmt: skip
    with pytest.raises(InputError, match=rf"a position of {position}; it must be in \[0, 8\]"):
        run_natively(case.node, case.inputs, case.like)


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="strides come with oneDNN's layouts")
@pytest.mark.parametrize("interleaved", [0, 1])
def test_pairs_of_a_transposed_value_are_read_as_they_lie(interleaved: int):
    graph = graph_of(
        "g (float[1, 5, 3, 20] x, float[1, 5, 10] c, float[1, 5, 10] s) => "
        "(float[1, 3, 5, 20] y) { a = Abs (x) t = Transpose <perm = [0, 2, 1, 3]> (a) "
        f"b = RotaryEmbedding <interleaved = {interleaved}> (t, c, s) y = Neg (b) }}"
    )
    assert "Reorder" not in {step.operator for step in lowered(graph).steps}
    feeds = {"x": seeded(1, 5, 3, 20), "c": seeded(1, 5, 10), "s": seeded(1, 5, 10)}
    found, wanted = run(graph, inputs=feeds), run(graph, ("native", "onednn"), feeds)
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-5, atol=1e-6)


def test_pairs_of_a_dying_value_are_turned_in_place():
    graph = graph_of(
        "g (float[1, 3, 5, 20] x, float[1, 5, 10] c, float[1, 5, 10] s) => "
        "(float[1, 3, 5, 20] y) { a = Abs (x) b = RotaryEmbedding (a, c, s) y = Neg (b) }"
    )
    (step,) = (step for step in lowered(graph).steps if step.implementation == "rotary")
    assert step.sharing
    feeds = {"x": seeded(1, 3, 5, 20), "c": seeded(1, 5, 10), "s": seeded(1, 5, 10)}
    found, wanted = run(graph, inputs=feeds), run(graph, ("native", "onednn"), feeds)
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-5, atol=1e-6)
