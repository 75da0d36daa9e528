"""Vectors of texts, against the equations and ONNX Runtime."""

import threading
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.embedding.exports import exported, tokenizer
from tests.embedding.texts import texts
from tests.frontend.gguf.encoders import embedding_model, encoder, ids_of, vector
from tightship import CapacityError, GraphError, InputError, StopFlag, StoppedError
from tightship.embedding import Embedder


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("encoder") / "e.gguf"
    found.write_bytes(embedding_model())
    return found


@pytest.mark.parametrize(("number", "pooling"), [(1, "mean"), (2, "cls"), (3, "last")])
def test_vectors_are_those_of_the_equations(tmp_path: Path, number: int, pooling: str) -> None:
    path, model = tmp_path / "e.gguf", encoder()
    path.write_bytes(embedding_model(pooling=number))
    given = texts(12)
    with Embedder(path) as embedder:
        found = embedder(given)
        assert (embedder.pooling, embedder.dimension) == (pooling, 64)
        wanted = np.stack([vector(model, ids_of(each), pooling) for each in given])
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        np.testing.assert_allclose(embedder(given[0]), wanted[0], atol=1e-6)
        numbers = embedder([ids_of(each) for each in given])
        np.testing.assert_array_equal(found, numbers)


def test_activations_may_be_rounded(tmp_path: Path) -> None:
    path = tmp_path / "e.gguf"
    path.write_bytes(embedding_model("Q8_0"))
    given = texts(4)
    with Embedder(path) as exact, Embedder(path, activations="int8") as rounded:
        errors = np.abs(exact(given) - rounded(given))
    assert 1e-5 < errors.max() < 0.05
    with pytest.raises(InputError, match="not a GGUF file"):
        Embedder(exported(tmp_path, encoder()), activations="int8")


@pytest.mark.parametrize("has_kinds", [True, False])
def test_an_export_gives_the_vectors_of_onnx_runtime(tmp_path: Path, *, has_kinds: bool) -> None:
    path = exported(tmp_path, encoder(), has_kinds=has_kinds)
    given, session = texts(20, 40), onnxruntime.InferenceSession(path)
    names = {each.name for each in session.get_inputs()}
    with Embedder(path) as embedder:
        found = embedder(given)
        assert (embedder.context, embedder.pooling, embedder.vocabulary_size) == (48, "mean", 18)
    for text, each in zip(given, found, strict=True):
        ids = np.array([tokenizer().encode(text).ids])
        inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
        (last,) = session.run(None, {name: inputs[name] for name in names})
        mean = last[0].mean(0)
        np.testing.assert_allclose(each, mean / np.linalg.norm(mean), atol=1e-6)


def test_a_vector_does_not_depend_on_the_texts_beside_it(path: Path) -> None:
    with Embedder(path) as embedder:
        given = texts(80)
        together = embedder(given)
        np.testing.assert_allclose(together, np.stack([embedder(t) for t in given]), atol=1e-6)
        np.testing.assert_allclose(together[::-1], embedder(given[::-1]), atol=1e-6)


def test_texts_of_any_lengths_make_no_further_program(path: Path) -> None:
    with Embedder(path) as embedder:
        model = embedder._runs.model
        before, shapes = model.programs, embedder.program_shapes
        assert before.held == len(shapes) == 6
        for seed in range(4):
            embedder(texts(40, seed=seed))
            embedder(texts(1, seed=seed))
        after = model.programs
        assert (after.misses, after.evictions) == (before.misses, before.evictions)


def test_a_limit_holds_all_programs_or_fewer(path: Path) -> None:
    given = texts(40)
    with Embedder(path) as embedder:
        wanted, peak_bytes = embedder(given), embedder.peak_bytes
        least_bytes, shapes = embedder._runs.model.plan.peak_bytes, embedder.program_shapes
    with Embedder(path, max_memory=peak_bytes) as embedder:
        assert (embedder.program_shapes, embedder.peak_bytes) == (shapes, peak_bytes)
    with Embedder(path, max_memory=peak_bytes - 1) as embedder:
        assert embedder.program_shapes == shapes[: len(embedder.program_shapes)] != shapes
        assert embedder.peak_bytes < peak_bytes
    with Embedder(path, max_memory=least_bytes) as embedder:
        assert (embedder.program_shapes, embedder.peak_bytes) == ([(1, 64)], least_bytes)
        np.testing.assert_allclose(embedder(given), wanted, atol=1e-6)
        misses = embedder._runs.model.programs.misses
        embedder(given)
        assert embedder._runs.model.programs.misses == misses
    with pytest.raises(CapacityError, match="for one text of 64 tokens") as raised:
        Embedder(path, max_memory=least_bytes - 1)
    assert (raised.value.needed_bytes, raised.value.limit_bytes) == (least_bytes, least_bytes - 1)
    with Embedder(path, context=32) as embedder:
        few_bytes = embedder._runs.model.plan.peak_bytes
    with Embedder(path, max_memory=few_bytes, context=32) as embedder:
        assert embedder.program_shapes == [(1, 32)]


def test_vectors_may_keep_their_length(path: Path) -> None:
    with Embedder(path) as embedder:
        plain = embedder(["the cat"], normalize=False)
        lengths = np.linalg.norm(plain, axis=1, keepdims=True)
        np.testing.assert_allclose(embedder(["the cat"]), plain / lengths, atol=1e-7)
        assert embedder([]).shape == (0, 64)


def test_a_long_text_is_refused_or_cut(path: Path) -> None:
    with Embedder(path) as embedder:
        with pytest.raises(InputError, match=r"Text 1 has 72 tokens; the model takes 64\."):
            embedder(["a", "cat " * 70])
        cut = embedder(["cat " * 70], truncate=True)
        np.testing.assert_array_equal(cut, embedder(["cat " * 62]))
        with pytest.raises(InputError, match="tokens are 0 to 17"):
            embedder([[2, 18]])
        with pytest.raises(InputError, match="has no tokens"):
            embedder([[]])


def test_what_is_not_an_encoder_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The context is 65"):
        Embedder(path, context=65)
    with pytest.raises(InputError, match="Unknown pooling `max`"):
        Embedder(path, pooling="max")
    scoring = tmp_path / "r.gguf"
    scoring.write_bytes(embedding_model(pooling=4, labels=1))
    with pytest.raises(GraphError, match=r"for `tightship\.embedding\.Reranker`"):
        Embedder(scoring)
    silent = tmp_path / "s.gguf"
    silent.write_bytes(embedding_model(pooling=None))
    with pytest.raises(InputError, match="give `pooling`"):
        Embedder(silent)
    with Embedder(silent, pooling="cls", context=32) as embedder:
        assert (embedder.pooling, embedder.program_shapes[0]) == ("cls", (1, 32))


def test_threads_take_turns_and_a_flag_ends_runs(path: Path) -> None:
    with Embedder(path) as embedder:
        given, found = texts(30), dict[int, object]()
        wanted = embedder(given)

        def ask(number: int) -> None:
            found[number] = embedder(given)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        for each_found in found.values():
            np.testing.assert_array_equal(each_found, wanted)
        assert len(found) == 4
        flag = StopFlag()
        flag.set()
        with pytest.raises(StoppedError):
            embedder.vectors(embedder.encode(given), stop=flag)
    with pytest.raises(InputError, match="closed"):
        embedder(["a"])


def test_a_shared_model_gives_the_same(path: Path) -> None:
    given = texts(20)
    with Embedder(path, share=True) as shared, Embedder(path) as own:
        np.testing.assert_allclose(shared(given), own(given), atol=1e-6)
        assert shared.program_shapes == own.program_shapes
