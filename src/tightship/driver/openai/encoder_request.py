"""Requests for vectors of texts and for scores, and their responses, in JSON."""

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from typing import Any

from tightship._core import StopFlag
from tightship.driver.openai.openai_error import ApiError
from tightship.driver.openai.request_fields import Fields, wrong
from tightship.driver.openai.text_request import parsed
from tightship.driver.texts.encoder_models import Encoder, EncoderModels
from tightship.embedding.embedder import Embedder
from tightship.embedding.reranker import Reranker
from tightship.errors import InputError

TEXTS_MAX = 2048
"""Most texts of a request, as OpenAI has it."""
EMBEDDING = ("model", "input", "encoding_format", "dimensions")
RERANKING = ("model", "query", "documents", "top_n", "return_documents")


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """Request for vectors.

    Attributes:
        model: Name of the model.
        texts: Texts, or numbers of tokens.
        is_base64: Whether vectors are sent as the bytes of their float32.
        dimensions: Elements that the client expects; None for any.
    """

    model: str
    texts: list[str | list[int]]
    is_base64: bool
    dimensions: int | None

    def answer(self, models: EncoderModels, flag: StopFlag) -> bytes:
        """Return the body of the response; errors are those of `EncoderModels.answer`."""
        body, texts, tokens = models.answer(
            self.model, lambda encoder: self._answered(encoder, flag)
        )
        models.count(self.model, texts, tokens)
        return body

    def _answered(self, encoder: Encoder, flag: StopFlag) -> tuple[bytes, int, int]:
        """Return the body of the response, and how many texts and tokens it is for.

        Raises:
            ApiError: The model gives no vectors, or not of these dimensions; a text is too long.
            StoppedError: The flag was set.
        """
        if not isinstance(encoder, Embedder):
            raise ApiError(400, f"`{self.model}` scores pairs of texts; use /v1/rerank")
        if self.dimensions not in (None, encoder.dimension):
            raise ApiError(
                400,
                f"`dimensions` is {self.dimensions}; vectors of `{self.model}` have "
                f"{encoder.dimension} elements, and are not shortened",
                code="unsupported_parameter",
                param="dimensions",
            )
        tokens = _in_context(lambda: encoder.encode(self.texts), "input")
        vectors = encoder.vectors(tokens, stop=flag)
        rows = [
            {
                "object": "embedding",
                "index": index,
                "embedding": b64encode(row.astype("<f4").tobytes()).decode()
                if self.is_base64
                else row.tolist(),
            }
            for index, row in enumerate(vectors)
        ]
        count = sum(map(len, tokens))
        usage = {"prompt_tokens": count, "total_tokens": count}
        said = {"object": "list", "data": rows, "model": self.model, "usage": usage}
        return json.dumps(said).encode(), len(tokens), count


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """Request for texts in the order in which they answer a question.

    Attributes:
        model: Name of the model.
        query: The question.
        texts: The texts.
        count: Most texts of the response.
        has_texts: Whether the response repeats them.
    """

    model: str
    query: str
    texts: list[str]
    count: int
    has_texts: bool

    def answer(self, models: EncoderModels, flag: StopFlag) -> bytes:
        """Return the body of the response; errors are those of `EncoderModels.answer`."""
        body, texts, tokens = models.answer(
            self.model, lambda encoder: self._answered(encoder, flag)
        )
        models.count(self.model, texts, tokens)
        return body

    def _answered(self, encoder: Encoder, flag: StopFlag) -> tuple[bytes, int, int]:
        """Return the body of the response, and how many texts and tokens it is for.

        Raises:
            ApiError: The model gives no scores, or a pair is too long.
            StoppedError: The flag was set.
        """
        if not isinstance(encoder, Reranker):
            raise ApiError(400, f"`{self.model}` gives vectors of texts; use /v1/embeddings")
        pairs = _in_context(lambda: encoder.encode(self.query, self.texts), "documents")
        scores = [_logistic(float(each)) for each in encoder.scores(pairs, stop=flag)]
        order = sorted(range(len(scores)), key=lambda index: -scores[index])[: self.count]
        rows: list[dict[str, Any]] = []
        for index in order:
            row: dict[str, Any] = {"index": index, "relevance_score": scores[index]}
            if self.has_texts:
                row["document"] = {"text": self.texts[index]}
            rows.append(row)
        count = sum(map(len, pairs))
        said = {"model": self.model, "results": rows, "usage": {"total_tokens": count}}
        return json.dumps(said).encode(), len(pairs), count


EncoderRequest = EmbeddingRequest | RerankRequest
Read = Callable[[bytes | bytearray | memoryview], EncoderRequest]


def read_embedding(body: bytes | bytearray | memoryview) -> EmbeddingRequest:
    """Read a request for `/v1/embeddings`.

    Raises:
        ApiError: A field is missing, wrong or not supported.
    """
    fields = Fields(parsed(body), EMBEDDING)
    given = fields.get("input")
    if isinstance(given, str) or (isinstance(given, list) and given and type(given[0]) is int):
        given = [given]
    if not isinstance(given, list) or not 0 < len(given) <= TEXTS_MAX:
        raise wrong("input", f"a text, numbers of tokens, or a list of 1 to {TEXTS_MAX} of these")
    for place, each in enumerate(given):
        is_numbers = isinstance(each, list) and all(type(token) is int for token in each)
        if not each or not (isinstance(each, str) or is_numbers):
            raise wrong(f"input[{place}]", "a text that is not empty, or numbers of tokens")
    form = fields.get("encoding_format") or "float"
    if form not in ("float", "base64"):
        raise wrong("encoding_format", "`float` or `base64`")
    dimensions = fields.integer("dimensions")
    return EmbeddingRequest(fields.text("model"), given, form == "base64", dimensions)


def read_reranking(body: bytes | bytearray | memoryview) -> RerankRequest:
    """Read a request for `/v1/rerank`.

    Raises:
        ApiError: A field is missing, wrong or not supported.
    """
    fields = Fields(parsed(body), RERANKING)
    given = fields.get("documents")
    if not isinstance(given, list) or not 0 < len(given) <= TEXTS_MAX:
        raise wrong("documents", f"a list of 1 to {TEXTS_MAX} texts")
    texts: list[str] = []
    for place, each in enumerate(given):
        text = each.get("text") if isinstance(each, dict) else each
        if not isinstance(text, str):
            raise wrong(f"documents[{place}]", "a text, or an object with `text`")
        texts.append(text)
    count = fields.integer("top_n")
    if count is not None and count < 1:
        raise wrong("top_n", "at least 1")
    return RerankRequest(
        fields.text("model"), fields.text("query"), texts, count or len(texts),
        fields.flag("return_documents"),
    )  # fmt: skip


def _in_context(encode: Callable[[], Any], name: str) -> Any:  # noqa: ANN401  what `encode` gives
    """Return the tokens of texts.

    Raises:
        ApiError: One is longer than the context, or has an unknown token.
    """
    try:
        return encode()
    except InputError as error:
        code = "context_length_exceeded" if "the model takes" in str(error) else None
        raise ApiError(400, str(error), code=code, param=name) from None


def _logistic(score: float) -> float:
    """Return a score between 0 and 1."""
    return 1 / (1 + exp(-score)) if score >= 0 else exp(score) / (1 + exp(score))
