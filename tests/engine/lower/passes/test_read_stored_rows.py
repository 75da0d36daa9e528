"""Attention over caches as they are stored, where nodes move their rows before it."""

import numpy as np
import onnx
import pytest

import tightship
from tests.models import parse
from tightship.engine.compile.compile_graph import Settings
from tightship.errors import GraphError
from tightship.loading.session_plan import session_planner

ROWS_FIRST = "Transpose<perm=[0,2,3,1]>(present_key)"


def decoder(keys: str = ROWS_FIRST, more: str = "") -> bytes:
    """Decoder whose caches are [batch, rows, heads, length], and its keys for the product."""
    model = parse(
        f"""
        g (int64[1,S] input_ids, float[1,P,2,16] past_key, float[1,P,2,16] past_value)
          => (float[1,S,32] logits, float[1,T,2,16] present_key, float[1,T,2,16] present_value)
        {{
          x = Gather(table, input_ids)
          four = Constant<value_ints=[0,0,2,16]>()
          h = Reshape(x, four)
          other = Neg(h)
          present_key = Concat<axis=1>(past_key, h)
          present_value = Concat<axis=1>(past_value, other)
          q = Transpose<perm=[0,2,1,3]>(h)
          {more}
          kt = {keys}
          v = Transpose<perm=[0,2,1,3]>(present_value)
          s = MatMul(q, kt)
          w = Softmax<axis=-1>(s)
          o = MatMul(w, v)
          t = Transpose<perm=[0,2,1,3]>(o)
          flat = Constant<value_ints=[0,0,32]>()
          logits = Reshape(t, flat)
        }}""",
        '<ir_version: 10, opset_import: ["" : 21]>',
    )
    table = np.random.default_rng(0).standard_normal((50, 32)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    return model.SerializeToString()


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8"])
def test_rows_before_heads_are_read_under_strides(kind: str) -> None:
    """A Transpose of stored rows copies nothing: the arena is the same for any context."""
    planner = session_planner(decoder(), None, Settings(), kind)
    planner.chunk = 1
    assert planner.plan(64).arena_bytes == planner.plan(512).arena_bytes
    with tightship.load(decoder(), shapes={"S": 1, "P": 1}) as model:
        plain, session = (model.session(64, chunk=1, cache=each) for each in (None, kind))
        for token in range(20):
            np.testing.assert_allclose(session.step([token]), plain.step([token]), atol=0.05)
        steps = session._programs.program(1).first_lowered.steps
        assert {"append", "attention"} <= {step.implementation for step in steps}
        assert "copy" not in {step.implementation for step in steps}


def test_keys_that_are_computed_with_are_refused() -> None:
    more = "k = Transpose<perm=[0,2,3,1]>(present_key)"
    data = decoder("Mul(k, k)", more)
    with (
        tightship.load(data, shapes={"S": 1, "P": 1}) as model,
        pytest.raises(GraphError, match=r"`past_key` cannot be stored as int8: node .* \(Mul\)"),
    ):
        model.session(64, chunk=1, cache="int8")
