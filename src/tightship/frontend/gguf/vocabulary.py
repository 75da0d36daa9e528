"""The vocabulary of a GGUF file, and the rules by which texts become tokens of it."""

import os
from pathlib import Path
from typing import NamedTuple, cast

from tightship.errors import FormatError, warn_caller
from tightship.frontend.gguf.header import read_header
from tightship.frontend.gguf.metadata import Metadata
from tightship.graph import MappedFile

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of tokens."""
PREFIX = "tokenizer.ggml"
TEMPLATE = "tokenizer.chat_template"


class Vocabulary(NamedTuple):
    """Tokens of a model, and what its file says of them.

    Attributes:
        path: Name of the file in messages.
        name: Name of the model; empty if the file has none.
        kind: Kind of tokenizer: `gpt2`, `llama` or `bert` are known.
        pre: Name of the rule that divides texts before tokens are joined; empty for none.
        tokens: Texts of the tokens, by number.
        types: Types of the tokens.
        scores: Scores of the tokens; None if the file has none.
        merges: Pairs of tokens that become one, the first first, with a space between them.
        special: Numbers of tokens by their role: `bos`, `eos`, `eot`, `eom`, `unknown`,
            `seperator` (as files spell it), `padding`.
        flags: Truth values by key: `add_bos_token`, `add_eos_token`, `add_space_prefix`, ...
        template: Template of chats; None if the file has none.
        longest_context: Most tokens that the model was trained with; None if the file does not say.
    """

    path: str
    name: str
    kind: str
    pre: str
    tokens: list[str]
    types: list[int]
    scores: list[float] | None
    merges: list[str]
    special: dict[str, int]
    flags: dict[str, bool]
    template: str | None
    longest_context: int | None


ROLES = ("bos", "eos", "eot", "eom", "unknown", "seperator", "padding")
FLAGS = (
    "add_bos_token", "add_eos_token", "add_space_prefix", "normalizer.lowercase",
    "normalizer.strip_accents",
)  # fmt: skip


def open_vocabulary(model: str | os.PathLike[str] | bytes) -> Vocabulary:
    """Read the vocabulary of a GGUF file, or of its bytes; the file may have only begun.

    Raises:
        FormatError: The file is not GGUF, or has no vocabulary, or one that does not fit.
        OSError: It cannot be opened.
    """
    if isinstance(model, bytes):
        header = read_header(MappedFile.of_bytes(model, Path("<bytes>")))
    else:
        header = read_header(MappedFile(model))
    return read_vocabulary(Metadata(header.path, header.fields))


def read_vocabulary(whole: Metadata) -> Vocabulary:
    """Read the vocabulary of a file's metadata.

    Raises:
        FormatError: The file has no vocabulary, or its parts do not fit one another.
    """
    own = Metadata(whole.path, whole.fields, PREFIX)
    tokens = own.texts("tokens")
    if not tokens:
        raise FormatError(
            f"`{whole.path}` has no `{PREFIX}.tokens`; a model without a vocabulary takes numbers "
            "of tokens. Convert the model again for texts."
        )
    types = own.numbers("token_type", len(tokens))
    return Vocabulary(
        whole.path,
        whole.text("general.name", ""),
        own.text("model"),
        own.text("pre", ""),
        tokens,
        [NORMAL] * len(tokens) if types is None else _integers(types),
        own.numbers("scores", len(tokens)),
        own.texts("merges") or [],
        {role: found for role in ROLES if (found := _number(own, role, tokens)) is not None},
        {key: own.flag(key, default=False) for key in FLAGS if own.has(key)},
        whole.text(TEMPLATE) if whole.has(TEMPLATE) else None,
        longest_context(whole),
    )


def _integers(numbers: list[float]) -> list[int]:
    """Return numbers as integers, most often as they are."""
    is_known = isinstance(numbers[0], int)
    return cast("list[int]", numbers) if is_known else [int(each) for each in numbers]


def longest_context(whole: Metadata) -> int | None:
    """Return the most tokens that a model was trained with; None if the file does not say.

    Raises:
        FormatError: The value is not a number.
    """
    if not whole.has("general.architecture"):
        return None
    own = Metadata(whole.path, whole.fields, whole.text("general.architecture"))
    return own.integer("context_length") if own.has("context_length") else None


def warn_untrained(context: int, longest: int | None) -> None:
    """Warn of a context that is longer than the longest text of the training, where that is known.

    Args:
        context: Tokens of a session.
        longest: Tokens of that text, as `longest_context` returns them.
    """
    if longest is not None and context > longest:
        warn_caller(
            f"the context has {context} tokens; the model was trained with texts of at most "
            f"{longest}, and what it says beyond these makes less and less sense"
        )


def _number(own: Metadata, role: str, tokens: list[str]) -> int | None:
    """Return the number of a token with a role; None if the file names none of its tokens."""
    found = own.fields.get(own.named(f"{role}_token_id"))
    if not isinstance(found, int) or isinstance(found, bool):
        return None
    return found if 0 <= found < len(tokens) else None
