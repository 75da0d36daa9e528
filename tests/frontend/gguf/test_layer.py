"""Layers as a plan of few of them needs them: equal to each other."""

from tests.frontend.gguf.decoders import decoder
from tightship.frontend.gguf import open_bytes


def test_layers_are_found_equal() -> None:
    for kind, type_ in (("llama", "Q4_0"), ("qwen2", "F32"), ("qwen3", "Q8_0")):
        assert open_bytes(decoder(kind, type_, layers=6).written()).layer_count() == 6
