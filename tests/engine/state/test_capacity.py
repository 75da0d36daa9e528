"""The graph with fixed caches itself."""

from tests import decoders
from tests.engine.state.loops import decoder


def test_no_shape_depends_on_the_past() -> None:
    made = decoder(decoders.llama(), 48)
    graph = made.graph(4, last=False)
    assert graph.value("present.0.key").shape == graph.value("past_key_values.0.key").shape
    assert set(graph.inputs) == {
        "input_ids", "past_length", *(cache.pair.past for cache in made.caches)
    }  # fmt: skip
    assert not {"attention_mask", "position_ids"} & set(graph.inputs)


def test_another_context_changes_nothing_but_lengths() -> None:
    small, large = (decoder(decoders.gpt2(), c).graph(2, last=True) for c in (16, 64))
    assert [node.operator for node in small.nodes] == [node.operator for node in large.nodes]


def test_bytes_of_the_state_are_those_of_the_caches() -> None:
    made = decoder(decoders.llama(), 100)
    assert made.bytes_per_token == 2 * 2 * 2 * 8 * 4
    assert made.state_bytes == 100 * made.bytes_per_token
