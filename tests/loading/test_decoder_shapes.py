"""Decoders that are loaded without shapes."""

import numpy as np
import onnx.parser
import pytest

import tightship
from tests import decoders
from tests.zoo import decoder as genai
from tightship.errors import InputError
from tightship.frontend.onnx import open_bytes
from tightship.loading.decoder_shapes import decoder_shapes


@pytest.mark.parametrize("model", [decoders.llama(), genai.decoder(genai.SMALL).model])
def test_a_decoder_needs_no_shapes(model):
    loaded = tightship.load(model)
    assert loaded.plan.inputs["input_ids"] == "1x1 int64"
    session = loaded.session(context=32)
    assert np.isfinite(session.step([1, 2, 3])).all()


def test_a_shared_decoder_needs_none_either(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.llama())
    alone, shared = (
        tightship.load(path, share=share).session(context=32).step([1, 2, 3])
        for share in (False, True)
    )
    np.testing.assert_array_equal(alone, shared)
    tightship.prepare(path, tmp_path / "decoder.tship")
    assert tightship.load(tmp_path / "decoder.tship").plan.inputs["input_ids"] == "1x1 int64"


def test_the_batch_may_be_given_alone():
    plan = tightship.plan(decoders.llama(), shapes={"batch_size": 2})
    assert plan.inputs["input_ids"] == "2x1 int64"


def test_the_mask_has_the_past_and_the_new_token():
    shapes = decoder_shapes(open_bytes(decoders.llama()), {})
    assert shapes is not None
    past = shapes["past_key_values.0.key"][2]
    assert shapes["attention_mask"] == (1, past + 1)


@pytest.mark.parametrize("given", [{"sequence_length": 2}, {"input_ids": (1, 2)}])
def test_other_lengths_want_all_lengths(given):
    with pytest.raises(InputError, match=r"not known|no length"):
        tightship.plan(decoders.llama(), shapes=given)


def test_a_batch_below_one_is_refused():
    with pytest.raises(InputError):
        tightship.plan(decoders.llama(), shapes={"batch_size": 0, "sequence_length": -1})


def test_other_models_have_none():
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        net (float[n, 3, 4] past, int64[n, m] input_ids) => (float[n, 3, 4] y) { y = Relu(past) }
    """)
    assert decoder_shapes(open_bytes(model.SerializeToString()), {}) is None
