"""Answers that follow a JSON schema, by the `llguidance` library."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from json import dumps
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightship.errors import InputError
from tightship.text.text_extra import imported

SCHEMAS_MAX = 32
"""Schemas that stay compiled."""
Schema = str | Mapping[str, Any]
"""JSON schema: a mapping, or its text."""


def schema_text(schema: Schema | None) -> str | None:
    """Return the text of a schema; None for none."""
    return schema if schema is None or isinstance(schema, str) else dumps(schema)


class GuidedVocabulary(NamedTuple):
    """Vocabulary, as answers that follow a schema need it.

    Attributes:
        path: Name of the model's file in messages.
        pieces: Bytes of each token; for a special one its name.
        special: Numbers of tokens that are not part of a text.
        ends: Numbers of the tokens that end an answer.
        encode: Returns the tokens of a text.
    """

    path: str
    pieces: Sequence[bytes]
    special: Sequence[int]
    ends: Sequence[int]
    encode: Callable[[str], list[int]]


class _Vocabulary:
    """Vocabulary as the library reads one."""

    def __init__(self, given: GuidedVocabulary) -> None:
        self.eos_token_id, self.bos_token_id = given.ends[0], None
        self.tokens, self.special_token_ids = given.pieces, given.special
        self._encode = given.encode

    def __call__(self, text: str | bytes) -> list[int]:
        """Return the tokens of a text; bytes are refused, which the library tries first."""
        if isinstance(text, bytes):
            raise TypeError(text)
        return self._encode(text)


class SchemaGuide:
    """Compiler of schemas for one vocabulary. May be used from several threads."""

    def __init__(self, vocabulary: GuidedVocabulary) -> None:
        """Read the vocabulary, which takes a tenth of a second.

        Raises:
            InputError: The vocabulary has no token that ends an answer; the library is missing.
        """
        if not vocabulary.ends:
            raise InputError(
                f"`{vocabulary.path}` names no token that ends an answer, which an answer by a "
                "schema needs. Use a model that has one, or no schema."
            )
        self._library: Any = imported("llguidance", extra="schema")
        wrapper = self._library.TokenizerWrapper(_Vocabulary(vocabulary))
        self._tokenizer = self._library.LLTokenizer(wrapper, eos_token=list(vocabulary.ends))
        self._compiled: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def follow(self, schema: str) -> "Followed":
        """Begin an answer by a schema, which is compiled at its first use.

        Raises:
            InputError: It is not a JSON schema that can be followed.
        """
        with self._lock:
            found = self._compiled.get(schema)
            if found is None:
                found = self._compiled[schema] = self._matcher(schema)
                if len(self._compiled) > SCHEMAS_MAX:
                    self._compiled.popitem(last=False)
            self._compiled.move_to_end(schema)
            return Followed(found.deep_copy())

    def _matcher(self, schema: str) -> Any:  # noqa: ANN401  a class of the library
        kind = self._library.LLMatcher
        try:
            matcher = kind(self._tokenizer, kind.grammar_from_json_schema(schema), log_level=0)
            reason = matcher.get_error()
        except ValueError as error:
            reason = str(error)
        if reason:
            raise InputError(
                f"The schema cannot be followed: {reason.strip().rstrip('.')}. Give a JSON schema "
                "without what is named."
            )
        return matcher


class Followed:
    """Schema, and how far an answer has come in it."""

    def __init__(self, matcher: Any) -> None:  # noqa: ANN401  a class of the library
        self._matcher = matcher

    @property
    def is_over(self) -> bool:
        """Whether nothing may follow what came."""
        return bool(self._matcher.is_stopped())

    def masked(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Return logits with those of tokens that may not come next made infinitely small.

        Args:
            logits: Logits of all tokens, `[vocabulary]`; they are left as they are.

        Raises:
            InputError: The schema is too complex for what came.
        """
        packed = self._matcher.compute_bitmask()
        if reason := self._matcher.get_error():
            raise InputError(f"The schema cannot be followed: {reason}. Give a simpler one.")
        allowed = np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")
        count = min(len(allowed), len(logits))
        found = np.full_like(logits, -np.inf)
        kept = allowed[:count].astype(bool)
        found[:count][kept] = logits[:count][kept]
        return found

    def take(self, token: int) -> None:
        """Note a token that came, one that `masked` has left.

        Raises:
            InputError: It does not follow the schema.
        """
        if not self._matcher.consume_token(token):
            raise InputError(f"Token {token} does not follow the schema: a defect of the library.")
