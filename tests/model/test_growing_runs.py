"""Loops over `Model.run` that pass a decoder's caches on, beside ONNX Runtime."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnxruntime
import pytest

import tightship
from tests import decoders
from tests.at_once import at_once
from tightship.model.growing_runs import LENGTHS_BEFORE
from tightship.model.row_blocks import RowBlocks

SIZE = decoders.Size(positions=2048)
MODELS = {
    "llama": decoders.llama(SIZE),
    "gpt2": decoders.gpt2(SIZE),
    "genai": decoders.genai(decoders.Size(length=16, positions=2048)),
    "attention23": decoders.attention23(SIZE),
}
Arrays = Mapping[str, np.ndarray]


class Reference:
    """ONNX Runtime's results."""

    def __init__(self, model: bytes) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self._session = onnxruntime.InferenceSession(model, options)
        self.inputs = {each.name: each.shape for each in self._session.get_inputs()}
        self._names = [each.name for each in self._session.get_outputs()]

    def run(self, inputs: Arrays) -> dict[str, np.ndarray]:
        return dict(zip(self._names, self._session.run(None, inputs), strict=True))

    def empty(self, batch: int, rows: int = 0) -> dict[str, np.ndarray]:
        return {
            name: np.zeros((batch, shape[1], rows, shape[3]), np.float32)
            for name, shape in self.inputs.items()
            if name.startswith("past")
        }

    def feeds(self, caches: Arrays, tokens: np.ndarray, past: int) -> dict[str, np.ndarray]:
        batch, steps = tokens.shape
        others = {
            "input_ids": tokens,
            "attention_mask": np.ones((batch, past + steps), np.int64),
            "position_ids": np.tile(np.arange(past, past + steps), (batch, 1)),
        }
        return {**caches, **{n: a for n, a in others.items() if n in self.inputs}}


def after(outputs: Arrays) -> dict[str, np.ndarray]:
    """Return the caches of a run by the names of the next run's inputs."""
    return {
        name.replace("present", "past_key_values"): array
        for name, array in outputs.items()
        if name.startswith("present")
    }


def lengths(batch: int, *steps: int) -> Iterator[tuple[int, np.ndarray]]:
    """Past lengths and tokens of steps."""
    random, past = np.random.default_rng(0), 0
    for count in steps:
        yield past, random.integers(0, 50, (batch, count))
        past += count


def assert_alike(found: Arrays, wanted: Arrays) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, 1e-4, 1e-5, err_msg=name)


@pytest.mark.parametrize(("name", "batch"), [*((name, 1) for name in MODELS), ("llama", 2)])
def test_a_loop_needs_programs_of_powers_of_two_alone(name: str, batch: int) -> None:
    reference = Reference(MODELS[name])
    with tightship.load(MODELS[name]) as model:
        caches = reference.empty(batch)
        for past, tokens in lengths(batch, 9, *[1] * 12, 5, 1, 1, 1):
            feeds = reference.feeds(caches, tokens, past)
            wanted = reference.run(feeds)
            assert_alike(model.run(feeds), wanted)
            caches = after(wanted)
        assert model.programs.misses == LENGTHS_BEFORE
        (programs,) = model._growing._kept.values()
        assert programs.count == 3  # for a chunk, for 1, and for 4 of five tokens


def test_a_loop_outgrows_its_first_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightship.model.growing_runs.ROWS", 16)
    reference = Reference(MODELS["llama"])
    with tightship.load(MODELS["llama"]) as model:
        caches = reference.empty(1)
        for past, tokens in lengths(1, 10, *[1] * 10, 60, *[1] * 3):
            feeds = reference.feeds(caches, tokens, past)
            wanted = reference.run(feeds)
            assert_alike(model.run(feeds), wanted)
            caches = after(wanted)
        (programs,) = model._growing._kept.values()
        assert programs.decoder.context == 256
        assert list(model._sessions._programs.values()) == [programs]


def test_a_table_of_positions_bounds_the_context() -> None:
    model = decoders.gpt2(decoders.Size(positions=64))
    reference = Reference(model)
    with tightship.load(model) as loaded:
        caches = reference.empty(1)
        for past, tokens in lengths(1, 30, 1, 1, 1, 1):
            feeds = reference.feeds(caches, tokens, past)
            wanted = reference.run(feeds)
            assert_alike(loaded.run(feeds), wanted)
            caches = after(wanted)
        (programs,) = loaded._growing._kept.values()
        assert programs.decoder.context == 64


def test_two_texts_go_on_from_one_cache() -> None:
    reference = Reference(MODELS["llama"])
    with tightship.load(MODELS["llama"]) as model:
        caches = reference.empty(1)
        for past, tokens in lengths(1, 7, 1, 1, 1):
            caches = after(model.run(reference.feeds(caches, tokens, past)))
        kept = {name: array.copy() for name, array in caches.items()}
        for token in (3, 40, 3):
            feeds = reference.feeds(caches, np.array([[token]]), 10)
            first = model.run(feeds)
            assert_alike(first, reference.run(feeds))
            model.run(reference.feeds(after(first), np.array([[9]]), 11))
            assert_alike(caches, kept)


def test_masks_with_gaps_have_programs_of_their_own() -> None:
    reference = Reference(MODELS["llama"])
    with tightship.load(MODELS["llama"]) as model:
        caches = reference.empty(1)
        for past, tokens in lengths(1, 6, 1, 1, 1, 1):
            feeds = reference.feeds(caches, tokens, past)
            feeds["attention_mask"][0, 0] = 0
            feeds["position_ids"] = np.maximum(feeds["position_ids"] - 1, 0)
            wanted = reference.run(feeds)
            found = model.run(feeds)
            np.testing.assert_allclose(found["logits"][:, -1], wanted["logits"][:, -1], 1e-4, 1e-5)
            caches = after(wanted)
        assert model.programs.misses == 5


@pytest.mark.parametrize("in_place", [False, True])
def test_caches_of_fixed_rows_need_no_program_for_each_mask(*, in_place: bool) -> None:
    reference = Reference(MODELS["genai"])
    with tightship.load(MODELS["genai"]) as model:
        caches = reference.empty(1, 48)
        for array in caches.values():
            array[...] = np.nan  # no run reads rows that are not in use
        own = {name: array.copy() for name, array in caches.items()}
        for past, tokens in lengths(1, 9, *[1] * 6, 3, 1):
            wanted = reference.run(reference.feeds(caches, tokens, past))
            given = {n.replace("past_key_values", "present"): a for n, a in own.items()}
            feeds = reference.feeds(own, tokens, past)
            found = model.run(feeds, outputs=given if in_place else None)
            assert_alike({"logits": found["logits"]}, {"logits": wanted["logits"]})
            used = past + tokens.shape[1]
            for name, array in after(found).items():
                assert np.shares_memory(array, own[name]) == in_place
                np.testing.assert_allclose(
                    array[:, :, :used], after(wanted)[name][:, :, :used], 1e-4, 1e-5
                )
            caches, own = after(wanted), after(found)
        assert model.programs.misses == LENGTHS_BEFORE


def test_outputs_elsewhere_have_programs_of_their_own() -> None:
    reference = Reference(MODELS["genai"])
    with tightship.load(MODELS["genai"]) as model:
        caches = reference.empty(1, 48)
        for past, tokens in lengths(1, 9, 1, 1, 1):
            other = np.empty((1, 2, 48, 16), np.float32)
            outputs = {"present.0.key": other}
            found = model.run(reference.feeds(caches, tokens, past), outputs=outputs)
            assert found["present.0.key"] is other
            caches = after({name: array.copy() for name, array in found.items()})
        assert model.programs.misses == 4


def test_a_limit_that_holds_no_rows_runs_lengths_one_by_one() -> None:
    reference = Reference(MODELS["llama"])
    limit = tightship.plan(MODELS["llama"]).peak_bytes + (1 << 20)
    with tightship.load(MODELS["llama"], max_memory=limit) as model:
        caches = reference.empty(1)
        for past, tokens in lengths(1, 4, *[1] * 6):
            feeds = reference.feeds(caches, tokens, past)
            wanted = reference.run(feeds)
            assert_alike(model.run(feeds), wanted)
            caches = after(wanted)
        assert model.programs.misses == 7


def test_threads_go_on_with_texts_of_their_own() -> None:
    reference = Reference(MODELS["llama"])

    def loop(seed: int) -> None:
        caches = reference.empty(1)
        for past, tokens in lengths(1, 3 + seed, *[1] * 12):
            feeds = reference.feeds(caches, tokens, past)
            wanted = reference.run(feeds)
            assert_alike(model.run(feeds), wanted)
            caches = after(wanted)

    with tightship.load(MODELS["llama"]) as model:
        at_once(loop, range(4))


def run_batches(model: tightship.Model, batches: Iterable[int]) -> None:
    """Run steps of some lengths at batches, and check the results."""
    reference = Reference(MODELS["llama"])
    for batch in batches:
        for past in (5, 6, 7):
            caches = reference.empty(batch, past)
            feeds = reference.feeds(caches, np.full((batch, 1), 7), past)
            assert_alike(model.run(feeds), reference.run(feeds))


def test_programs_of_few_batches_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tightship.model.growing_runs.BATCHES", 2)
    with tightship.load(MODELS["llama"]) as model:
        run_batches(model, (1, 2, 3, 4, 1, 2, 3))
        assert len(model._sessions._programs) == 2
        model.release_unused_memory()
        assert model._growing._rows is None


def test_batches_that_take_turns_as_joined_requests_do_keep_their_programs() -> None:
    with tightship.load(MODELS["llama"]) as model:
        run_batches(model, range(1, 9))
        made = dict(model._growing._kept)
        run_batches(model, range(1, 9))
        assert made == model._growing._kept
        assert len(made) == 8


def test_smaller_batches_run_in_the_rows_of_larger_ones() -> None:
    with tightship.load(MODELS["llama"]) as model:
        run_batches(model, (1, 4))
        rows = model._growing._rows
        run_batches(model, (2, 1, 4, 3))
        assert model._growing._rows is rows
        run_batches(model, (5,))
        assert model._growing._rows is not rows


def test_rows_behind_those_in_use_are_zero() -> None:
    reference = Reference(MODELS["llama"])
    with tightship.load(MODELS["llama"]) as model:
        run_batches(model, (3,))
        for batch, past in ((3, 20), (2, 9), (3, 8)):
            caches = {n: np.full_like(a, 7) for n, a in reference.empty(batch, past).items()}
            model.run(reference.feeds(caches, np.full((batch, 1), 7), past))
            for array in model._growing._rows.arrays.values():
                assert np.all(array[:batch, :, :past] == 7)
                assert not array[:batch, :, past + 1 :].any()


def test_blocks_of_caches_are_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reference, random = Reference(MODELS["llama"]), np.random.default_rng(0)
    parts = [
        {n: random.standard_normal(a.shape, np.float32) for n, a in reference.empty(b, 9).items()}
        for b in (1, 2, 1)
    ]
    caches = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
    feeds = reference.feeds(caches, np.full((4, 1), 7), 9)
    read: list[str] = []
    with tightship.load(MODELS["llama"]) as model:
        run_batches(model, (4,))
        wanted = model.run(feeds)
        monkeypatch.setattr(RowBlocks, "__array__", None)  # no one joins them
        blocks = {n: RowBlocks([e[n] for e in parts], lambda n=n: read.append(n)) for n in caches}
        found = model.run({**feeds, **blocks})
    assert read == list(caches)
    for name, array in wanted.items():
        assert np.array_equal(found[name], array), name


def test_blocks_of_lengths_with_a_program_of_their_own_are_copied_once_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference = Reference(MODELS["llama"])
    with tightship.load(MODELS["llama"]) as model:
        for past in (4, 5, 6):  # the first two have programs of their own
            model.run(reference.feeds(reference.empty(2, past), np.full((2, 1), 7), past))
        caches = reference.empty(2, 5)
        feeds = reference.feeds(caches, np.full((2, 1), 7), 5)
        wanted = model.run(feeds)
        monkeypatch.setattr(RowBlocks, "__array__", None)
        blocks = {n: RowBlocks([a[:1], a[1:]], lambda: None) for n, a in caches.items()}
        assert_alike(model.run({**feeds, **blocks}), wanted)


def test_programs_that_a_limit_does_not_hold_replace_those_before() -> None:
    with tightship.load(MODELS["llama"]) as model:
        run_batches(model, (1, 2))
        (programs, *_) = model._growing._kept.values()
        needed = programs.planned_bytes() + 4 * programs.decoder.state_bytes
        peak = model.plan.peak_bytes
    with tightship.load(MODELS["llama"], max_memory=peak + 4 * needed) as model:
        run_batches(model, range(1, 9))
        assert len(model._growing._kept) < 8
        assert (8, None) in model._growing._kept


def test_a_stopped_run_leaves_no_trace() -> None:
    reference = Reference(MODELS["llama"])
    with tightship.load(MODELS["llama"]) as model:
        for past in (5, 6, 7, 8):
            feeds = reference.feeds(reference.empty(1, past), np.array([[7]]), past)
            model.run(feeds)
        stop = tightship.StopFlag()
        stop.set()
        feeds = reference.feeds(reference.empty(1, 9), np.array([[7]]), 9)
        with pytest.raises(tightship.StoppedError):
            model.run(feeds, stop=stop)
        assert_alike(model.run(feeds), reference.run(feeds))
