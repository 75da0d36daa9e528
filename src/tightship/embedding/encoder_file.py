"""Model files of encoders: vocabulary, context and pooling."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from tightship.embedding.encoded_texts import FileEncoder, JsonEncoder, TextEncoder
from tightship.embedding.vocabulary_file import CONTEXT, read_beside, vocabulary_beside
from tightship.errors import InputError
from tightship.frontend.gguf.pooling import open_pooling
from tightship.frontend.gguf_letters import begins_as_gguf
from tightship.text.tokenizer import Tokenizer

POOLINGS = ("mean", "cls", "last")
"""Kinds of pooling that may be chosen."""


@dataclass(frozen=True, slots=True)
class EncoderFile:
    """Model file of an encoder.

    Attributes:
        path: The file.
        encoder: Encoder of texts.
        context: Most tokens of a text.
        pooling: Kind of pooling, one of `POOLINGS` or `rank`; None if the files do not say.
    """

    path: Path
    encoder: TextEncoder
    context: int
    pooling: str | None

    def with_choices(self, pooling: str | None, context: int | None) -> "EncoderFile":
        """Return the file with what a caller chooses.

        Raises:
            InputError: The kind of pooling is unknown, or the context is longer than the model's.
        """
        if pooling is not None and pooling not in POOLINGS:
            raise InputError(f"Unknown pooling `{pooling}`; choose one of {', '.join(POOLINGS)}.")
        if context is not None and not 2 <= context <= self.context:
            raise InputError(
                f"The context is {context}; `{self.path.name}` has room for 2 to {self.context} "
                "tokens of a text."
            )
        return replace(self, pooling=pooling or self.pooling, context=context or self.context)


def is_encoder(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a GGUF encoder, or an ONNX model with a `tokenizer.json` beside it.

    Raises:
        FormatError: It begins as a GGUF file and is not one.
    """
    if begins_as_gguf(path):
        return open_pooling(path)[0]
    return vocabulary_beside(Path(path)) is not None


def open_encoder_file(path: str | os.PathLike[str]) -> EncoderFile:
    """Read what a model's file says, or the files beside it.

    Raises:
        FormatError: A file is damaged.
        GraphError: The vocabulary of a GGUF file is not supported.
        InputError: The file does not exist, is not of an encoder, or has no vocabulary; a package
            of the extra `text` is missing.
    """
    place = Path(path)
    if not place.is_file():
        raise InputError(f"No file `{place}` exists; name a model in GGUF or ONNX.")
    if not begins_as_gguf(place):
        beside = read_beside(place)
        encoder: TextEncoder = JsonEncoder(beside.vocabulary)
        return EncoderFile(place, encoder, beside.context, beside.pooling)
    is_bert, pooling = open_pooling(place)
    if not is_bert:
        raise InputError(
            f"`{place}` is not an encoder, which gives vectors; use `tightship generate` or a "
            "session for a decoder."
        )
    tokenizer = Tokenizer.open(place)
    context = tokenizer.longest_context or CONTEXT
    return EncoderFile(place, FileEncoder(tokenizer), context, pooling)
