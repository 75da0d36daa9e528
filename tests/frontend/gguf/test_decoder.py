"""Logits of decoders in GGUF, against their equations in float32."""

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, LENGTH, Model, decoder, logits
from tests.frontend.gguf.written import Tensor
from tightship.errors import GraphError
from tightship.frontend.gguf.architectures import ARCHITECTURES
from tightship.frontend.gguf.parts import TYPES


def check(model: Model) -> None:
    wanted = logits(model)
    with tightship.load(model.written()) as loaded:
        session = loaded.session(32, rows="all")
        found = np.concatenate([session.step(IDS[:6]), session.step(IDS[6:])], 1)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("type_", TYPES)
def test_a_llama_of_each_type_computes_its_equations(type_: str) -> None:
    wide = {"width": 256, "feed_forward_length": 256} if type_.endswith("_K") else {}
    check(decoder("llama", type_, is_tied=type_ != "Q4_0", **wide))


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_each_architecture_computes_its_equations(kind: str) -> None:
    check(decoder(kind, "Q8_0"))


def test_gemma_has_windows_scaling_and_a_cap() -> None:
    scaled = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0, "rope.freq_base": 1e6}
    check(decoder("gemma3", "Q8_0", layers=6, **scaled, **{
        "attention.sliding_window": 4, "final_logit_softcapping": 3.0,
    }))  # fmt: skip


def test_windows_of_phi_hide_keys() -> None:
    model = decoder("phi3", "Q8_0", **{"attention.sliding_window": 3})
    check(model)
    model.fields["attention.sliding_window"] = 0
    check(model)


def test_positions_are_scaled() -> None:
    check(decoder(**{"rope.freq_base": 500.0, "rope.scaling.type": "linear",
                     "rope.scaling.factor": 4.0}))  # fmt: skip
    factors = decoder("llama")
    factors.tensors["rope_freqs.weight"] = Tensor.floats(np.linspace(1, 8, LENGTH // 2))
    check(factors)


def test_a_part_of_a_head_is_rotated() -> None:
    check(decoder("qwen2", **{"rope.dimension_count": 8}))


def test_a_tensor_without_a_use_is_refused() -> None:
    model = decoder()
    model.tensors["blk.0.ffn_gate_exps.weight"] = Tensor.floats(np.zeros((2, 2)))
    with pytest.raises(GraphError, match=r"`blk.0.ffn_gate_exps.weight`, which is not supported"):
        tightship.plan(model.written())
