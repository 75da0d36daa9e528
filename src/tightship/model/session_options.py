"""Defines `SessionOptions`: what a caller of `Model.session` chooses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tightship.engine.state.cache_types import CacheType, check_cache_type
from tightship.engine.state.step_choices import StepChoices
from tightship.errors import InputError
from tightship.model.feeds import Array

if TYPE_CHECKING:
    from tightship.model.session_pool import SessionPool

CHUNK = 128
"""Most tokens of a program, unless the caller chooses."""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Choices of a caller of `Model.session`.

    Attributes:
        context: Most tokens.
        batch: Texts that go on at once, each by as many tokens.
        chunk: Most tokens of a program; rounded down to a power of two, and to half the context.
        rows: `last` or `all`: the logits that a step returns.
        state: Output by cache input, with `*`; None recognizes names.
        inputs: Arrays of inputs that are the same at each step.
        pool: Gives the pages of the caches; None reserves them.
        share_prefix: Whether rows of equal first tokens are shared with other sessions.
        grows: Whether caches of open rows have more rows after a step; the model decides if True.
        cache: Type that caches are rounded to; None for the model's.
    """

    context: int
    batch: int = 1
    chunk: int = CHUNK
    rows: str = "last"
    state: Mapping[str, str] | None = None
    inputs: Mapping[str, ArrayLike] | None = None
    pool: "SessionPool | None" = None
    share_prefix: bool = False
    grows: bool = True
    cache: CacheType | None = None

    def __post_init__(self) -> None:
        if self.rows not in ("last", "all"):
            raise InputError(f'`rows` is {self.rows!r}; it must be "last" or "all".')
        if self.share_prefix and self.rows == "all":
            raise InputError(
                'Tokens of a shared prefix do not run; `rows` must be "last" with `share_prefix`.'
            )
        check_cache_type(self.cache)
        if self.chunk < 1:
            raise InputError(f"`chunk` is {self.chunk}; it must be at least 1.")

    def choices(self) -> StepChoices:
        """Return what programs depend on."""
        chunk = 1 << (min(self.chunk, max(self.context // 2, 1)).bit_length() - 1)
        state = None if self.state is None else tuple(sorted(self.state.items()))
        extra = tuple(sorted((name, array.shape) for name, array in self.arrays().items()))
        last = self.rows == "last"
        return StepChoices(
            self.context, self.batch, chunk, last, self.grows, state, extra, self.cache
        )

    def arrays(self) -> dict[str, Array]:
        """Return the constant inputs as arrays."""
        return {name: np.asarray(given) for name, given in (self.inputs or {}).items()}
