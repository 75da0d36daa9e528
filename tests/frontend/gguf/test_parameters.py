"""Numbers of decoders, and what is refused."""

from typing import Any

import pytest

from tests.frontend.gguf.decoders import HEADS, INNER, LAYERS, LENGTH, SHARED, WIDTH, decoder
from tightship.errors import FormatError, GraphError
from tightship.frontend.gguf.parameters import Parameters, read_parameters
from tightship.frontend.gguf.rotary import Rotary
from tightship.frontend.gguf.shards import contents_of
from tightship.graph import MappedFile


def read(kind: str = "llama", **fields: Any) -> Parameters:
    model = decoder(kind)
    model.fields.update(fields)
    model.fields = {key: each for key, each in model.fields.items() if each is not None}
    file = MappedFile.of_bytes(model.written(), "m")
    return read_parameters(contents_of([file], None).metadata)


def test_numbers_are_read_and_default() -> None:
    found = read(**{"attention.key_length": None, "rope.freq_base": 500.0})
    assert found.kind.name == "llama"
    sizes = found.layers, found.width, found.inner, found.heads, found.shared, found.length
    assert sizes == (LAYERS, WIDTH, INNER, HEADS, SHARED, LENGTH)
    assert found.epsilon == pytest.approx(1e-5)
    assert found.rotary == Rotary(LENGTH, 500.0, 1.0, are_neighbours=True)
    listed = read(**{"attention.head_count": [HEADS] * LAYERS, "expert_count": 0})
    assert listed.heads == HEADS


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"block_count": None}, "`llama.block_count` is absent; it must be an integer"),
        ({"attention.head_count_kv": 3}, "is 3; it must be a divisor of 4 heads"),
        ({"attention.value_length": 8}, "is 8; it must be 16, as long as keys"),
        ({"attention.head_count_kv": [2, 1]}, "is '2 numbers'; it must be one number for all"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expert_count": 8}, "the key `llama.expert_count`, which is not supported"),
        ({"logit_scale": 2.0}, "the key `llama.logit_scale`, which is not supported"),
    ],
)
def test_options_that_are_not_supported_are_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        read(**fields)


def test_scores_of_the_largest_gemma_are_scaled_by_the_width() -> None:
    assert read("gemma3").scale == LENGTH**-0.5
    wide = {"block_count": 62, "embedding_length": 72}
    assert read("gemma3", **wide).scale == (72 // HEADS) ** -0.5
    assert read("qwen3", **wide).scale == LENGTH**-0.5


def test_other_architectures_are_named_with_those_that_are_known() -> None:
    with pytest.raises(GraphError, match="`mamba`, which is not supported; supported are llama, "):
        read("mamba")
