"""Tokens of a session: read from what a caller gives, and kept to be computed again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tightship.engine.state.decoder import Decoder
from tightship.errors import InputError
from tightship.model.feeds import Array

if TYPE_CHECKING:
    from tightship.model.spilled_rows import SpilledRows


def read_tokens(given: ArrayLike, decoder: Decoder, length: int) -> Array:
    """Return tokens as the model takes them, `[batch, count, ...]`.

    Args:
        given: What the caller gives.
        decoder: The model.
        length: Tokens before these.

    Raises:
        InputError: They are no tokens, or more than the context has room for.
    """
    wanted = decoder.types[decoder.tokens]
    array = np.asarray(given)
    rank = len(decoder.declared[decoder.tokens] or ())
    if rank == 2 and array.size:
        if array.dtype.kind not in "iu":
            raise InputError(
                f"Tokens are {array.dtype}; they must be whole numbers, the numbers of tokens."
            )
        least = array.item() if array.size == 1 else array.min()  # a step is often of one token
        if least < 0:
            raise InputError(f"A token is {least}; numbers of tokens are at least 0.")
    if rank == 3 and array.dtype != wanted.numpy:
        raise InputError(f"Embeddings are {array.dtype}; they must be {wanted.numpy}.")
    if array.ndim == rank - 1:
        array = array[None]
    if array.ndim != rank or array.shape[0] != decoder.batch or not array.shape[1]:
        raise InputError(
            f"Tokens have the shape {list(array.shape)}; the session takes "
            f"[{decoder.batch}, count], with at least one token."
        )
    if length + array.shape[1] > decoder.context:
        raise InputError(
            f"{array.shape[1]} tokens after {length} are more than the session's context "
            f"of {decoder.context}. Truncate or reset the session, or open one with a larger "
            "context."
        )
    return array.astype(wanted.numpy, copy=False)


class KeptTokens:
    """Tokens of a session that may lose its rows.

    Attributes:
        are_evicted: Whether the rows are lost, or spilled.
        spilled: Rows that were spilled, of these tokens or more; None for none.
    """

    __slots__ = ("_parts", "are_evicted", "spilled")

    def __init__(self) -> None:
        """Keep none yet."""
        self._parts: list[Array] = []
        self.are_evicted = False
        self.spilled: SpilledRows | None = None

    def add(self, tokens: Array) -> None:
        """Keep further tokens, `[batch, count, ...]`."""
        self._parts.append(tokens.copy())

    def add_written(self, tokens: Sequence[int]) -> None:
        """Keep further tokens of a batch of one, which are numbers."""
        if tokens:
            self._parts.append(np.array([tokens], self._parts[0].dtype))

    def all(self) -> Array:
        """Return all tokens."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts, axis=1)]
        return self._parts[0]

    def cut(self, length: int) -> None:
        """Keep the first tokens alone."""
        self._parts = [self.all()[:, :length]] if length else []
        if not length:
            self.spilled = None
