"""Tightship or ONNX Runtime as a contender of bench_llama: commands on standard input.

    python -m benchmarks.llama_contender KIND MODEL CONTEXT THREADS

Kinds are tightship, tightship-int8-float16 (`activations="int8"`, as llama.cpp's products by
quantised weights, with caches of float16, as it has them), tightship-int8 (the same with
`cache="float32"`), tightship-shared (`share=True`) and onnxruntime. `prompt COUNT THREADS` and
`steps PAST COUNT THREADS` print tokens per second, as llama_driver.c; `together SESSIONS COUNT PAST
THREADS` those of sessions of Tightship that step together.
"""

import sys
import time
from typing import Any, Literal, Protocol

import numpy as np

SHAPES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1,
          "total_sequence_length": 2}  # fmt: skip
CHUNK = 512
TOKENS = 300 + np.arange(1 << 16) * 48271 % 30011  # the module of random numbers takes memory


class Decoder(Protocol):
    """Text that goes on."""

    def keep(self, count: int) -> None:
        """Forget all tokens but the first ones."""

    def append(self, ids: Any) -> None:
        """Compute the logits of the last of some more tokens."""


class Ours:
    """A session."""

    is_shared = False
    activations: Literal["float32", "int8"] = "float32"
    cache: Literal["float32"] | None = None

    def __init__(self, path: str, context: int, threads: int) -> None:
        import tightship

        shapes = None if path.endswith(".gguf") else SHAPES
        self.model = tightship.load(
            path, shapes=shapes, threads=threads, share=self.is_shared, activations=self.activations
        )
        self.session = self.model.session(context, cache=self.cache)
        length = (self.model.known_output_shapes["logits"] or (None,))[-1]
        self.vocabulary = length if isinstance(length, int) else 1 << 20

    def keep(self, count: int) -> None:
        """Truncate the session."""
        self.session.truncate(count)

    def append(self, ids: Any) -> None:
        """Take a step."""
        self.session.step(ids % self.vocabulary)

    def together(self, sessions: int, count: int, past: int) -> float:
        """Return tokens per second of several sessions that step together."""
        from tightship.model.joint_steps import JointSteps

        context = self.session.context
        opened = [self.model.session(context, cache=self.cache) for _ in range(sessions)]
        for each in opened:
            each.step(TOKENS[:past] % self.vocabulary)
        joint = JointSteps.of(opened[0])
        for place in range(count):
            tokens = [int(TOKENS[place] % self.vocabulary)] * sessions
            if sessions > 1:
                joint.step(opened, tokens)
            else:
                opened[0].step(tokens)
            if place == 0:
                start = time.perf_counter()
        spent = time.perf_counter() - start
        joint.close()
        for each in opened:
            each.close()
        return sessions * (count - 1) / spent


class Rounded(Ours):
    """A session whose products round activations to int8, and whose caches are of float16."""

    activations = "int8"


class RoundedProducts(Rounded):
    """Such a session whose caches are not rounded."""

    cache = "float32"


class Shared(Ours):
    """A session of a model that all processes of the user map."""

    is_shared = True


class Theirs:
    """ONNX Runtime, its caches bound once as inputs and outputs in the same bytes."""

    def __init__(self, path: str, context: int, threads: int) -> None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(3)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(path, options)
        self.binding = self.session.io_binding()
        self.past = 0
        for each in self.session.get_inputs():
            if each.name.startswith("past"):
                rows = np.zeros((1, each.shape[1], context, each.shape[3]), np.float32)
                cache = onnxruntime.OrtValue.ortvalue_from_numpy(rows)
                self.binding.bind_ortvalue_input(each.name, cache)
                present = each.name.replace("past_key_values", "present")
                self.binding.bind_ortvalue_output(present, cache)

    def keep(self, count: int) -> None:
        """Write later rows over those beyond."""
        self.past = count

    def append(self, ids: Any) -> None:
        """Run once."""
        self.past += len(ids)
        ids = np.asarray(ids, np.int64)[None]
        self.binding.bind_cpu_input("input_ids", ids)
        self.binding.bind_cpu_input("attention_mask", np.ones((1, self.past), np.int64))
        self.binding.bind_output("logits")
        self.session.run_with_iobinding(self.binding)


KINDS = {"tightship": Ours, "tightship-int8-float16": Rounded,
         "tightship-int8": RoundedProducts, "tightship-shared": Shared,
         "onnxruntime": Theirs}  # fmt: skip


def main() -> None:
    """Load the model, and answer commands."""
    kind, path, context, threads = sys.argv[1:]
    decoder: Decoder = KINDS[kind](path, int(context), int(threads))
    used = 0
    print("ready", flush=True)
    for line in sys.stdin:
        name, *rest = line.split()
        numbers = list(map(int, rest))
        if name == "prompt":
            decoder.keep(0)
            used = numbers[0]
            start = time.perf_counter()
            decoder.append(TOKENS[:used])
            found = used / (time.perf_counter() - start)
        elif name == "together":
            assert isinstance(decoder, Ours), "sessions are Tightship's"
            found = decoder.together(*numbers[:3])
        else:
            used, found = _steps(decoder, used, numbers[0], numbers[1])
        print(f"{found:.3f}", flush=True)


def _steps(decoder: Decoder, used: int, past: int, count: int) -> tuple[int, float]:
    """Return the tokens there are, and tokens per second of steps after the first of these."""
    if used > past:
        decoder.keep(past)
        used = past
    for start in range(used, past, CHUNK):
        decoder.append(TOKENS[start : min(start + CHUNK, past)])
    decoder.append(TOKENS[past : past + 1])
    start = time.perf_counter()
    for place in range(past + 1, past + count):
        decoder.append(TOKENS[place : place + 1])
    return past + count, (count - 1) / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
