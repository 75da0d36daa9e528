"""Encoders of GGUF files as graphs, against the equations."""

from typing import Any

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.encoders import encoder, hidden, ids_of, score
from tests.frontend.gguf.written import Tensor
from tightship.errors import FormatError, GraphError
from tightship.frontend.gguf import open_bytes

IDS = ids_of("the cat sat on a mat ##s")
KINDS = [0] * 5 + [1] * 4


def run(data: bytes, *, kinds: list[int] | None = None, filled: int = 0) -> Any:
    count = len(IDS) + filled
    ids = np.array([IDS + [0] * filled] * 2)
    types = np.array([(kinds or [0] * len(IDS)) + [0] * filled] * 2)
    mask = np.array([[1] * len(IDS) + [0] * filled, [1] + [0] * (count - 1)])
    with tightship.load(data, shapes={"batch_size": 2, "sequence_length": count}) as model:
        return model(input_ids=ids, attention_mask=mask, token_type_ids=types)[0]


@pytest.mark.parametrize("options", [{}, {"is_packed": True}, {"layers": 1}])
def test_tokens_are_those_of_the_equations(options: dict[str, Any]) -> None:
    model = encoder(**options)
    for filled in (0, 7):
        found = run(model.written(), kinds=KINDS, filled=filled)[: len(IDS)]
        np.testing.assert_allclose(found, hidden(model, IDS, KINDS), atol=1e-5)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1"])
def test_types_of_blocks_give_the_dequantized_result(kind: str) -> None:
    model = encoder(kind, layers=1)
    found = run(model.written())
    np.testing.assert_allclose(found, hidden(model, IDS), rtol=1e-4, atol=3e-5)


def test_a_pair_is_scored() -> None:
    model = encoder(pooling=4, labels=3)
    found = run(model.written(), kinds=KINDS)
    np.testing.assert_allclose(found, score(model, IDS, KINDS), atol=1e-5)


def test_inputs_have_the_names_of_exports() -> None:
    file = open_bytes(encoder().written())
    ids = ("batch_size", "sequence_length")
    names = ("input_ids", "attention_mask", "token_type_ids")
    assert file.declared == dict.fromkeys(names, ids)
    assert file.declared_outputs == {"last_hidden_state": (*ids, 64)}
    assert file.usual_lengths == {"batch_size": 1, "sequence_length": 64}


def test_a_plan_needs_no_lengths() -> None:
    plan = tightship.plan(encoder().written())
    assert plan.is_exact
    assert plan.inputs["input_ids"] == "1x64 int64"


def test_tensors_must_fit() -> None:
    model = encoder()
    model.tensors["extra.weight"] = Tensor.floats(np.zeros((2, 2), np.float32))
    with pytest.raises(GraphError, match=r"`extra\.weight`, which is not supported"):
        open_bytes(model.written())
    model = encoder()
    del model.tensors["blk.1.ffn_up.bias"]
    with pytest.raises(FormatError, match=r"lacks the tensor `blk\.1\.ffn_up\.bias`"):
        open_bytes(model.written())
