"""Choices of sessions, and programs that sessions of equal choices share."""

import pytest

import tightship
from tests import decoders
from tests.zoo import decoder as genai
from tightship.model.sessions import IDLE_MAX

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}


def test_sessions_of_equal_choices_share_programs() -> None:
    with tightship.load(decoders.llama(), shapes=SIZES) as model:
        one, same, other = (model.session(context) for context in (32, 32, 64))
        assert one._programs is same._programs
        assert one._programs is not other._programs
        one.step([1, 2, 3])
        same.step([4])
        assert (one.length, same.length, other.length) == (3, 1, 0)
    with pytest.raises(tightship.InputError, match="closed"):
        model.session(32)


@pytest.mark.parametrize("model", [decoders.llama(), genai.decoder(genai.SMALL).model])
def test_steps_use_the_weights_of_a_shared_file(model, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "decoder.onnx"
    path.write_bytes(model)
    with tightship.load(path, share=True) as shared:
        session = shared.session(context=64)
        session.step(list(range(40)))
        stored = {id(copy.block) for copy in shared.packed_weights}
        own = [copy.weight for copy in session._programs.packed if id(copy.block) not in stored]
        assert sum(weight.size_bytes for weight in own) <= 16 << 10  # ranges of lengths


def test_programs_of_contexts_that_no_session_has_are_forgotten() -> None:
    with tightship.load(decoders.llama(), shapes=SIZES) as model:
        kept = model.session(16)
        for context in range(32, 32 + 3 * IDLE_MAX):
            model.session(context)
        assert len(model._sessions._programs) <= IDLE_MAX + 2
        assert kept._programs in model._sessions._programs.values()
