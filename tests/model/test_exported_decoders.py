"""Sessions of decoders as the usual exporters write them, against ONNX Runtime."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.decoder_exports import transformers5
from tests.engine.state.loops import GrowingCaches

GENAI = partial(decoders.genai, window=5, softcap=4.0, sliding=True)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    "make",
    [
        transformers5,
        partial(transformers5, cap=5.0),
        partial(transformers5, window=5),
        partial(transformers5, window=5, flat=True),
        GENAI,
    ],
)
def test_logits_are_those_of_growing_caches(make: Callable[[], bytes], batch: int) -> None:
    data = make()
    other = GrowingCaches(data, batch, head=16 if make is GENAI else 0)
    with tightship.load(data, shapes={"batch_size": batch}) as model:
        session = model.session(context=32, batch=batch)
        for ids in ([3, 1, 4, 1, 5, 9, 2], *[[each] for each in (6, 5, 3, 5, 8, 9)]):
            found = session.step([ids] * batch)
            np.testing.assert_allclose(found[:, -1], other.step(ids)[:, -1], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("cap", [0.0, 5.0])
def test_arenas_do_not_depend_on_the_context(cap: float) -> None:
    with tightship.load(transformers5(cap=cap)) as model:
        short, long = (model.session(context=each, chunk=16) for each in (64, 640))
        assert short._programs.planned_bytes() == long._programs.planned_bytes()
        operators = {step.operator for step in long._programs.program(16).first_lowered.steps}
        assert "Attention" in operators
        assert "Softmax" not in operators


def test_a_sliding_cache_without_room_is_refused_before_anything_is_written() -> None:
    data = decoders.genai(window=4, sliding=True)
    shapes = {"input_ids": (1, 1), "attention_mask": (1, 9)}
    for layer, rows in enumerate((8, 8)):
        shapes |= {f"past_key_values.{layer}.{part}": (1, 2, rows, 16) for part in ("key", "value")}
    with tightship.load(data, shapes=shapes) as model:
        fed = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        fed |= {name: np.ones(shapes[name], np.int64) for name in ("input_ids", "attention_mask")}
        with pytest.raises(tightship.InputError, match="from step 8 on"):
            model(**fed)
