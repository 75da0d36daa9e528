"""Scores of pairs, against the equations and ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.embedding.exports import exported, tokenizer
from tests.embedding.texts import texts
from tests.frontend.gguf.encoders import embedding_model, encoder, ids_of, score
from tightship import GraphError, InputError
from tightship.embedding import Reranker

QUERY = "the cat sat"


def test_scores_are_those_of_the_equations(tmp_path: Path) -> None:
    path, model, given = tmp_path / "r.gguf", encoder(pooling=4, labels=1), texts(20, 50)
    path.write_bytes(embedding_model(pooling=4, labels=1))
    before = ids_of(QUERY)
    with Reranker(path) as reranker:
        found = reranker(QUERY, given)
        assert (reranker.context, reranker.program_shapes[0]) == (64, (1, 64))
        assert reranker.peak_bytes >= reranker._runs.model.plan.peak_bytes
        with pytest.raises(InputError, match="Text 0 has 66 tokens"):
            reranker(QUERY, ["cat " * 60])
        cut = reranker(QUERY, ["cat " * 60], truncate=True)
        np.testing.assert_array_equal(cut, reranker(QUERY, ["cat " * 58]))
        with pytest.raises(InputError, match="tokens; the model takes 64"):
            reranker("cat " * 70, ["a"], truncate=True)
    for text, each in zip(given, found, strict=True):
        behind = ids_of(text)[1:]
        kinds = [0] * len(before) + [1] * len(behind)
        np.testing.assert_allclose(each, score(model, before + behind, kinds)[0], atol=2e-6)


def test_an_export_gives_the_scores_of_onnx_runtime(tmp_path: Path) -> None:
    path = exported(tmp_path, encoder(labels=1))
    given, session = texts(10, 30), onnxruntime.InferenceSession(path)
    with Reranker(path) as reranker:
        found = reranker(QUERY, given)
    for text, each in zip(given, found, strict=True):
        pair = tokenizer().encode(QUERY, text)
        ids, kinds = np.array([pair.ids]), np.array([pair.type_ids])
        inputs = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": kinds}
        np.testing.assert_allclose(each, session.run(None, inputs)[0][0, 0], atol=2e-6)


def test_a_model_that_gives_vectors_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.gguf"
    path.write_bytes(embedding_model())
    with pytest.raises(GraphError, match=r"for `tightship\.embedding\.Embedder`"):
        Reranker(path)
