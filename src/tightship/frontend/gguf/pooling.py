"""Pooling of tokens' vectors, as the metadata of a GGUF file says."""

import os

from tightship.frontend.gguf.header import read_header
from tightship.frontend.gguf.metadata import Metadata
from tightship.graph import MappedFile

BERT = "bert"
"""The architecture whose models give vectors of texts, or scores of pairs."""
KEY = "pooling_type"
POOLINGS = ("none", "mean", "cls", "last", "rank")
"""Names of the kinds of pooling, by their numbers in files."""


def pooling_of(whole: Metadata) -> str | None:
    """Return the kind of pooling of a model that gives vectors, one of `POOLINGS`.

    None if the file does not say.

    Raises:
        FormatError: The number is unknown.
    """
    own = Metadata(whole.path, whole.fields, BERT)
    if not own.has(KEY):
        return None
    found = own.fields[own.named(KEY)]
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < len(POOLINGS):
        raise own.refusal(KEY, found, f"a number of 0 to {len(POOLINGS) - 1}")
    return POOLINGS[found]


def open_pooling(path: str | os.PathLike[str]) -> tuple[bool, str | None]:
    """Return whether a GGUF file is of an encoder, and the kind of pooling that it names.

    Raises:
        FormatError: The file is not GGUF.
        OSError: It cannot be opened.
    """
    header = read_header(MappedFile(path))
    whole = Metadata(header.path, header.fields)
    return whole.text("general.architecture", "") == BERT, pooling_of(whole)
