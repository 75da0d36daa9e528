"""Decoders with fixed caches, against ONNX Runtime's loop with caches that grow."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from tests import decoders
from tests.engine.state.loops import FixedCaches, GrowingCaches, decoder
from tightship.errors import GraphError

RANDOM = np.random.default_rng(3)
MODELS: dict[str, Callable[[], bytes]] = {
    "gpt2": decoders.gpt2,
    "llama": decoders.llama,
    "qwen2": decoders.qwen2,
    "genai packed": decoders.genai,
    "genai": partial(decoders.genai, packed=False),
    "genai window": partial(decoders.genai, window=5),
    "attention 23": decoders.attention23,
    "attention 23, heads apart": partial(decoders.attention23, flat=False),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
near = partial(np.testing.assert_allclose, rtol=1e-4, atol=2e-5)


def tokens(count: int) -> list[int]:
    return [int(token) for token in RANDOM.integers(0, 50, count)]


@every_model
def test_sixty_tokens_after_prompts(make: Callable[[], bytes]) -> None:
    model = make()
    growing, fixed = GrowingCaches(model), FixedCaches(model, 96)
    for steps in (7, 1, 4, 16, 2, *[1] * 60):
        ids = tokens(steps)
        near(fixed.step(ids), growing.step(ids))


@every_model
def test_the_last_row_of_a_context_that_is_full(make: Callable[[], bytes]) -> None:
    model = make()
    growing, fixed = GrowingCaches(model), FixedCaches(model, 16, last=True)
    for steps in (5, 8, 1, 2):
        ids = tokens(steps)
        found = fixed.step(ids)
        assert found.shape == (1, 1, 50)
        near(found, growing.step(ids)[:, -1:])


@pytest.mark.parametrize("make", [decoders.gpt2, decoders.llama, decoders.attention23])
def test_a_batch_of_two(make: Callable[[], bytes]) -> None:
    model = make()
    growing, fixed = GrowingCaches(model, 2), FixedCaches(model, 32, 2)
    for steps in (3, 1, 1, 4):
        ids = tokens(steps)
        near(fixed.step(ids), growing.step(ids))


def test_group_query_attention_over_a_buffer_of_the_file_s_length() -> None:
    growing = GrowingCaches(decoders.genai())
    fixed = FixedCaches(decoders.genai(rows="max_sequence_length"), 24)
    assert not fixed.decoder.caches[0].grows
    for steps in (6, 1, 1, 5, 1):
        ids = tokens(steps)
        near(fixed.step(ids), growing.step(ids))


@pytest.mark.parametrize("rows", [24, "max_sequence_length"])
def test_caches_that_the_file_scatters_into(rows: int | str) -> None:
    size = decoders.Size(layers=1)
    whole, parts = (FixedCaches(decoders.scattered24(size, rows), 24) for _ in range(2))
    ids = tokens(9)
    wanted = whole.step(ids)
    found = [parts.step(part) for part in (ids[:4], ids[4:5], ids[5:9])]
    near(np.concatenate(found, axis=1), wanted)


def test_caches_are_told_by_name_where_they_have_other_names() -> None:
    import onnx

    model = onnx.load_from_string(decoders.llama())
    for values in (model.graph.input, model.graph.output, *[n.input for n in model.graph.node],
                   *[n.output for n in model.graph.node]):  # fmt: skip
        for index, value in enumerate(values):
            if isinstance(value, str):
                values[index] = _other(value)
            else:
                value.name = _other(value.name)
    told = {"a.*.c": "b.*.d"}
    data = model.SerializeToString()
    with pytest.raises(GraphError, match="has no caches"):
        decoder(data, 32)
    with pytest.raises(GraphError, match="lacks"):
        decoder(data, 32, state={"none": "mem"})
    assert len(decoder(data, 32, state=told).caches) == 4


def _other(name: str) -> str:
    if name.startswith("past_key_values."):
        return f"a.{name.removeprefix('past_key_values.')}.c"
    return f"b.{name.removeprefix('present.')}.d" if name.startswith("present.") else name


@pytest.mark.parametrize("make", [decoders.genai, decoders.attention23])
def test_a_table_shorter_than_the_context_is_named(make: Callable[[decoders.Size], bytes]) -> None:
    size = decoders.Size(shared=4, positions=32)
    decoder(make(size), 32).graph(1, last=False)
    with pytest.raises(GraphError, match=r"table `.*` of 32 rows, fewer than the context of 64"):
        decoder(make(size), 64).graph(1, last=False)


def test_a_table_that_is_sliced_limits_the_context_too() -> None:
    with pytest.raises(GraphError, match=r"32.* context of 64"):
        decoder(decoders.gpt2(decoders.Size(shared=4, positions=32)), 64).graph(1, last=False)


def test_a_graph_that_cannot_be_read_for_so_many_tokens_names_the_context() -> None:
    with pytest.raises(GraphError, match="fewer rows than the context of 256"):
        decoder(decoders.gpt2(), 256).graph(128, last=True)
