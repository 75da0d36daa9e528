"""Defines `Reranker`, which scores texts by how well they answer a question."""

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tightship._core import StopFlag
from tightship.embedding.encoded_texts import Encoded
from tightship.embedding.encoder_file import EncoderFile, open_encoder_file
from tightship.embedding.text_runs import TextRuns, load_encoder
from tightship.errors import GraphError
from tightship.model import Model
from tightship.public_calls import explains_memory, public_methods


@public_methods
class Reranker:
    """Scores of pairs of texts by a cross-encoder, in GGUF or ONNX.

        with Reranker("ms-marco-MiniLM-L6-v2.gguf") as reranker:
            scores = reranker("Who sat?", ["A cat sat.", "A dog ran."])

    Programs are made at the start, as for `Embedder`.
    """

    @explains_memory("loading a model")
    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        context: int | None = None,
        max_memory: str | int | None = None,
        threads: int | None = None,
        activations: Literal["float32", "int8"] | None = None,
        share: bool = False,
    ) -> None:
        """Load a model; arguments and errors are those of `Embedder`.

        Args:
            model: GGUF file of the architecture `bert` with `cls.output`, or ONNX file with the
                `tokenizer.json` of its export beside it.
            context: Most tokens of a pair; by default what the model was trained with.
            max_memory: Most memory that the model may take.
            threads: Threads of each kernel; by default one.
            activations: Type that matrices of a GGUF file are multiplied by, as for `load`.
            share: Whether to prepare the model once for this user and map that, as for `load`.

        Raises:
            CapacityError, FormatError, GraphError, InputError: As `Embedder`.
        """
        file = open_encoder_file(model).with_choices(None, context)
        loaded = load_encoder(file, max_memory=max_memory, threads=threads,
                              activations=activations, share=share)  # fmt: skip
        try:
            self._begin(loaded, file)
        except BaseException:
            loaded.close()
            raise

    def _begin(self, model: Model, file: EncoderFile) -> None:
        self._output = _output_of(model, file)
        self._runs = TextRuns(model, file)

    @property
    def peak_bytes(self) -> int:
        """Most memory that the model takes, with all its programs."""
        return self._runs.peak_bytes

    @property
    def program_shapes(self) -> list[tuple[int, int]]:
        """Pairs and tokens of each program: no others are made."""
        return [(each.rows, each.length) for each in self._runs.buckets]

    @property
    def context(self) -> int:
        """Most tokens of a pair."""
        return self._runs.file.context

    @explains_memory("scores of texts")
    def __call__(
        self, query: str, texts: Sequence[str], *, truncate: bool = False
    ) -> NDArray[np.float32]:
        """Return a score for each text, `[texts]`, as the model gives it: higher fits better.

        Args:
            query: The question.
            texts: Texts that may answer it.
            truncate: Whether the text of a pair that is longer than the context is cut, rather
                than refused.

        Raises:
            InputError: A pair is too long, or the reranker is closed.
        """
        return self.scores(self.encode(query, texts, truncate=truncate))

    def encode(self, query: str, texts: Sequence[str], *, truncate: bool = False) -> list[Encoded]:
        """Return the tokens of the pairs of a question and each text; errors are those of a call.

        Args:
            query: The question.
            texts: Texts that may answer it.
            truncate: Whether the text of a pair that is too long is cut.
        """
        encoder = self._runs.file.encoder
        kept = len(encoder.encode(query)) + 1
        return [
            self._runs.fitting(
                encoder.encode_pair(query, each), place, truncate=truncate, kept=kept
            )
            for place, each in enumerate(texts)
        ]

    def scores(
        self, pairs: Sequence[Encoded], *, stop: StopFlag | None = None
    ) -> NDArray[np.float32]:
        """Return the scores of pairs that `encode` returned, `[pairs]`.

        Args:
            pairs: Tokens of the pairs.
            stop: Flag that ends the runs when another thread sets it.

        Raises:
            InputError: The reranker is closed.
            StoppedError: The flag was set.
        """
        found = np.empty(len(pairs), np.float32)
        for ran in self._runs.run(pairs, self._output, stop):
            found[ran.places] = ran.values[: len(ran.places), 0]
        return found

    def close(self) -> None:
        """Release all memory; waits for runs in progress."""
        self._runs.model.close()

    def __enter__(self) -> "Reranker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tightship.embedding.Reranker {self._runs.file.path.name}: context {self.context}>"


def reranker_over(model: Model, file: EncoderFile) -> Reranker:
    """Make a reranker over a loaded model, which its owner closes.

    Raises:
        CapacityError, GraphError, InputError: As the constructor of `Reranker`.
    """
    found = Reranker.__new__(Reranker)
    found._begin(model, file)
    return found


def _output_of(model: Model, file: EncoderFile) -> str:
    """Return the output with one number for each pair.

    Raises:
        GraphError: There is none.
    """
    shapes = {name: shape for name, (_, shape) in model.output_types.items()}
    for name, shape in shapes.items():
        if shape is not None and len(shape) == 2 and shape[1] == 1:
            return name
    said = ", ".join(f"`{name}` {list(shape or ())}" for name, shape in shapes.items())
    raise GraphError(
        f"`{file.path}` has the outputs {said}; a model that scores pairs has one of `[batch, 1]`. "
        "A model that gives vectors is for `tightship.embedding.Embedder`."
    )
