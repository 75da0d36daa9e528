"""Loops of tokens: ONNX Runtime with caches that grow, and a rewritten graph with fixed ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from tightship.engine.state.decoder import Declared, Decoder, decoder_of
from tightship.frontend.onnx import open_bytes
from tightship.loading.entry import load_graph

Array = NDArray[Any]


SLIDING = 128
"""Rows of sliding caches, which do not grow."""


class GrowingCaches:
    """ONNX Runtime's own loop: each step takes the caches that the last one returned."""

    def __init__(
        self, model: bytes | Path, batch: int = 1, threads: int = 0, *, head: int = 0
    ) -> None:
        onnxruntime.set_default_logger_severity(3)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(model, options)
        self.past = 0
        self.batch = batch
        self.caches: dict[str, Array] = {}
        for each in self.session.get_inputs():
            if each.name.startswith("past"):
                rows = SLIDING if each.shape[2] == "past_sliding_length" else 0
                shape = (batch, each.shape[1], rows, head or each.shape[3])
                self.caches[each.name] = np.zeros(shape, np.float32)

    def step(self, ids: Sequence[int]) -> Array:
        """Logits of the new tokens."""
        steps = len(ids)
        total = self.past + steps
        names = {each.name for each in self.session.get_inputs()}
        feeds: dict[str, Array] = {"input_ids": np.tile(np.array(ids, np.int64), (self.batch, 1))}
        if "attention_mask" in names:
            feeds["attention_mask"] = np.ones((self.batch, total), np.int64)
        if "position_ids" in names:
            feeds["position_ids"] = np.tile(np.arange(self.past, total), (self.batch, 1))
        found = self.session.run(None, {**feeds, **self.caches})
        outputs = dict(zip([o.name for o in self.session.get_outputs()], found, strict=True))
        for name in self.caches:
            self.caches[name] = outputs[name.replace("past_key_values", "present")]
        self.past = total
        return np.asarray(outputs["logits"])


class FixedCaches:
    """A rewritten graph's loop, with new arrays for the caches at each step."""

    def __init__(self, model: bytes, context: int, batch: int = 1, *, last: bool = False,
                 state: Mapping[str, str] | None = None) -> None:  # fmt: skip
        self.decoder = decoder(model, context, batch, state)
        self.last = last
        self.past = 0
        self.models: dict[int, Any] = {}
        self.caches = {c.pair.past: np.zeros(c.shape, np.float32) for c in self.decoder.caches}

    def step(self, ids: Sequence[int]) -> Array:
        """Logits of the new tokens."""
        steps = len(ids)
        if steps not in self.models:
            graph = self.decoder.graph(steps, last=self.last)
            self.models[steps] = load_graph(graph, "decoder")
        tokens = np.tile(np.array(ids, np.int64), (self.decoder.batch, 1))
        found = self.models[steps].run({
            self.decoder.tokens: tokens, "past_length": np.array([self.past]), **self.caches
        })  # fmt: skip
        for cache in self.decoder.caches:
            self.caches[cache.pair.past] = found[cache.pair.present]
        self.past += steps
        return np.asarray(found[self.decoder.logits])


def decoder(
    model: bytes, context: int, batch: int = 1, state: Mapping[str, str] | None = None
) -> Decoder:
    """Recognize the decoder of a model."""
    file = open_bytes(model)
    declared = Declared.of(file.graph(None, allow_symbolic=True))
    return decoder_of(file.graph, declared, context, batch, state)
