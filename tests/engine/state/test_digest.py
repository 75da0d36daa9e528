"""Digests of decoders."""

import pytest

from tests import decoders
from tests.engine.state.loops import decoder
from tightship.engine.state import digest as module
from tightship.engine.state.digest import digest_of


def digest(model: bytes, context: int = 16) -> str:
    return digest_of(decoder(model, context).file_graph(1))


def test_a_digest_tells_models_apart_and_not_contexts() -> None:
    model = decoders.llama()
    assert digest(model) == digest(model, 64)
    assert len({digest(make()) for make in (decoders.llama, decoders.qwen2, decoders.gpt2)}) == 3


def test_constants_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = digest(decoders.llama())
    monkeypatch.setattr(module, "PIECE_BYTES", 1000)
    assert digest(decoders.llama()) == whole


def test_one_weight_makes_another_digest() -> None:
    import onnx

    changed = onnx.load_from_string(decoders.llama())
    weight = next(w for w in changed.graph.initializer if len(w.raw_data) > 1000)
    data = bytearray(weight.raw_data)
    data[4] ^= 1
    weight.raw_data = bytes(data)
    assert digest(decoders.llama()) != digest(changed.SerializeToString())
