"""Defines `Embedder`, which gives vectors of texts."""

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tightship._core import StopFlag
from tightship.embedding.encoded_texts import Encoded
from tightship.embedding.encoder_file import POOLINGS, EncoderFile, open_encoder_file
from tightship.embedding.text_runs import Array, Ran, TextRuns, load_encoder
from tightship.errors import GraphError, InputError
from tightship.model import Model
from tightship.public_calls import explains_memory, public_methods

READY = "sentence_embedding"
"""Output of exports that pool themselves."""


@public_methods
class Embedder:
    """Vectors of texts by an encoder such as MiniLM, in GGUF or ONNX.

        with Embedder("all-MiniLM-L6-v2.gguf", max_memory="128MiB") as embedder:
            vectors = embedder(["A cat sat.", "A dog ran."])

    A few programs are made at the start, for texts filled up to 16, 32, 64, 96, ... tokens, and for
    several of up to 256 tokens; texts of other lengths make no more. A vector differs by rounding
    alone with the texts beside it. Several threads may use one embedder; runs take turns.

    Attributes:
        dimension: Elements of a vector.
        pooling: How a text's vector is made of its tokens': `mean`, `cls` (the first token's) or
            `last`.
        peak_bytes: Most memory that the model takes, with all programs; what it was loaded with
            as `max_memory` or less.
    """

    @explains_memory("loading a model")
    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        pooling: str | None = None,
        context: int | None = None,
        max_memory: str | int | None = None,
        threads: int | None = None,
        activations: Literal["float32", "int8"] | None = None,
        share: bool = False,
    ) -> None:
        """Load a model.

        Args:
            model: GGUF file of the architecture `bert`, or ONNX file with the `tokenizer.json` of
                its export beside it or in the folder above `onnx`.
            pooling: `mean`, `cls` or `last`; by default what the file says, or
                `1_Pooling/config.json` beside an ONNX file.
            context: Most tokens of a text; by default what the model was trained with.
            max_memory: Most memory that the model may take, such as `"128MiB"`. If it does not
                hold all programs, short texts are filled up to greater lengths.
            threads: Threads of each kernel; by default one.
            activations: Type that matrices of a GGUF file are multiplied by, as for `load`.
            share: Whether to prepare the model once for this user and map that, as for `load`.

        Raises:
            CapacityError: The program for one text of the whole context exceeds the limit.
            FormatError, GraphError: The model, or a file beside it, cannot be read or run.
            InputError: An argument does not fit, the file has no vocabulary or says no pooling; a
                package of the extra `text` is missing.
        """
        file = open_encoder_file(model).with_choices(pooling, context)
        loaded = load_encoder(file, max_memory=max_memory, threads=threads,
                              activations=activations, share=share)  # fmt: skip
        try:
            self._begin(loaded, file)
        except BaseException:
            loaded.close()
            raise

    def _begin(self, model: Model, file: EncoderFile) -> None:
        self._output, self.dimension, is_ready = _output_of(model, file)
        if not is_ready and file.pooling not in POOLINGS:
            raise InputError(
                f"`{file.path}` does not say how vectors of tokens become one of a text "
                f"(`{file.pooling or 'none'}`); give `pooling`, one of {', '.join(POOLINGS)}."
            )
        self.pooling = "model" if is_ready else str(file.pooling)
        self._runs = TextRuns(model, file)

    @property
    def peak_bytes(self) -> int:
        """Most memory that the model takes, with all its programs."""
        return self._runs.peak_bytes

    @property
    def program_shapes(self) -> list[tuple[int, int]]:
        """Texts and tokens of each program: no others are made."""
        return [(each.rows, each.length) for each in self._runs.buckets]

    @property
    def context(self) -> int:
        """Most tokens of a text."""
        return self._runs.file.context

    @property
    def vocabulary_size(self) -> int:
        """Tokens of the vocabulary."""
        return self._runs.file.encoder.size

    @explains_memory("vectors of texts")
    def __call__(
        self,
        texts: str | Sequence[str | Sequence[int]],
        *,
        normalize: bool = True,
        truncate: bool = False,
    ) -> NDArray[np.float32]:
        """Return the vectors of texts, `[texts, dimension]`, or `[dimension]` of a single one.

        Args:
            texts: Texts, or numbers of tokens of each.
            normalize: Whether vectors have the length 1.
            truncate: Whether a text that is longer than the context is cut, rather than refused.

        Raises:
            InputError: A text is empty or too long, or the embedder is closed.
        """
        given = [texts] if isinstance(texts, str) else texts
        found = self.vectors(self.encode(given, truncate=truncate), normalize=normalize)
        return found.reshape(self.dimension) if isinstance(texts, str) else found

    def encode(
        self, texts: Sequence[str | Sequence[int]], *, truncate: bool = False
    ) -> list[Encoded]:
        """Return the tokens of texts.

        Args:
            texts: Texts, or numbers of tokens of each.
            truncate: Whether a text that is longer than the context is cut, rather than refused.

        Raises:
            InputError: A text is empty or too long, or a number is not a token's.
        """
        return [self._encoded(each, place, cut=truncate) for place, each in enumerate(texts)]

    def _encoded(self, text: str | Sequence[int], place: int, *, cut: bool) -> Encoded:
        encoder = self._runs.file.encoder
        if isinstance(text, str):
            return self._runs.fitting(encoder.encode(text), place, truncate=cut)
        tokens = [int(each) for each in text]
        if not all(0 <= each < encoder.size for each in tokens):
            raise InputError(
                f"Text {place} has a token that is not in the vocabulary; tokens are 0 to "
                f"{encoder.size - 1}."
            )
        return self._runs.fitting(Encoded(tokens, [0] * len(tokens)), place, truncate=cut)

    def vectors(
        self, texts: Sequence[Encoded], *, normalize: bool = True, stop: StopFlag | None = None
    ) -> NDArray[np.float32]:
        """Return the vectors of texts that `encode` returned, `[texts, dimension]`.

        Args:
            texts: Tokens of the texts.
            normalize: Whether vectors have the length 1.
            stop: Flag that ends the runs when another thread sets it.

        Raises:
            InputError: The embedder is closed.
            StoppedError: The flag was set.
        """
        found = np.empty((len(texts), self.dimension), np.float32)
        for ran in self._runs.run(texts, self._output, stop):
            found[ran.places] = _pooled(ran, self.pooling)
        if normalize:
            lengths = np.linalg.norm(found, axis=-1, keepdims=True)
            np.divide(found, lengths, out=found, where=lengths > 0)
        return found

    def close(self) -> None:
        """Release all memory; waits for runs in progress."""
        self._runs.model.close()

    def __enter__(self) -> "Embedder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        name, pooling = self._runs.file.path.name, self.pooling
        return (
            f"<tightship.embedding.Embedder {name}: {self.dimension} elements, pooling {pooling}>"
        )


def embedder_over(model: Model, file: EncoderFile) -> Embedder:
    """Make an embedder over a loaded model, which its owner closes.

    Raises:
        CapacityError, GraphError, InputError: As the constructor of `Embedder`.
    """
    found = Embedder.__new__(Embedder)
    found._begin(model, file)
    return found


def _output_of(model: Model, file: EncoderFile) -> tuple[str, int, bool]:
    """Return the output to use, the elements of a vector, and whether it is one of each text.

    Raises:
        GraphError: The model gives no vectors.
    """
    shapes = model.known_output_shapes
    ready = shapes.get(READY)
    if ready is not None and file.pooling is None and len(ready) == 2:
        return READY, _length(model, READY), True
    named = ("last_hidden_state", "token_embeddings", *shapes)
    for name in named:
        shape = shapes.get(name)
        if shape is not None and len(shape) == 3:
            return name, _length(model, name), False
    raise GraphError(
        f"`{file.path}` has the outputs {', '.join(shapes)}, none of which is vectors of tokens, "
        "`[batch, tokens, elements]`. A model that scores pairs is for "
        "`tightship.embedding.Reranker`."
    )


def _length(model: Model, name: str) -> int:
    shape = model.output_types[name][1]
    assert shape is not None, name
    return shape[-1]


def _pooled(ran: Ran, pooling: str) -> Array:
    """Return the vector of each text of a run, `[texts, elements]`."""
    count = len(ran.places)
    if pooling == "model":
        return ran.values[:count]
    if pooling == "cls":
        return ran.values[:count, 0]
    rows = zip(ran.values, ran.lengths, strict=False)
    if pooling == "last":
        return np.stack([row[length - 1] for row, length in rows])
    return np.stack([row[:length].mean(0) for row, length in rows])
