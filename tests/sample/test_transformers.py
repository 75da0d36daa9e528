"""Transformers of the samples run at any batch and length."""

import numpy as np
import pytest

from tests.sample.networks import check, feeds
from tests.zoo.oracle import expected
from tightship.sample.network import Network
from tightship.sample.transformers import Size, bert, gpt2

TINY = Size(layers=2, hidden=24, heads=3, vocabulary=50, positions=16)


@pytest.mark.parametrize(("batch", "steps"), [(1, 5), (3, 16)])
@pytest.mark.parametrize("write", [bert, gpt2])
def test_texts_of_any_length_run(write: type, batch: int, steps: int) -> None:
    net = Network(3)
    write(net, "batch", "sequence", TINY)
    check(net.model().SerializeToString(), batch, steps)


def test_gpt2_does_not_look_ahead() -> None:
    net = Network(3)
    gpt2(net, "batch", "sequence", TINY)
    model = net.model().SerializeToString()
    given = feeds(model, 1, 8)
    changed = {"input_ids": np.where(np.arange(8) < 5, given["input_ids"], 7)}
    (before,), (after,) = expected(model, given).values(), expected(model, changed).values()
    np.testing.assert_allclose(before[:, :5], after[:, :5], rtol=1e-6)
    assert np.abs(before[:, 5:] - after[:, 5:]).max() > 1e-3


def test_bert_ignores_tokens_that_the_mask_leaves_out() -> None:
    net = Network(3)
    bert(net, "batch", "sequence", TINY)
    model = net.model().SerializeToString()
    given = feeds(model, 1, 8) | {"attention_mask": (np.arange(8) < 5).astype(np.int64)[None]}
    changed = given | {"input_ids": np.where(np.arange(8) < 5, given["input_ids"], 7)}
    (before,), (after,) = expected(model, given).values(), expected(model, changed).values()
    np.testing.assert_allclose(before[:, :5], after[:, :5], rtol=1e-5, atol=1e-6)
