"""Choices that the programs of a decoder's sessions depend on besides the model."""

from collections.abc import Mapping
from typing import NamedTuple

from tightship.engine.state.cache_types import CacheType
from tightship.engine.state.decoder import Declared, Decoder, decoder_of
from tightship.engine.state.file_graphs import Read


class StepChoices(NamedTuple):
    """Choices of one set of programs.

    Attributes:
        context: Most tokens.
        batch: Texts that go on at once, each by as many tokens.
        chunk: Most tokens of a program, a power of two.
        last: Whether programs compute the logits of their last token alone.
        grows: Whether caches of open rows have more rows after a step; the model decides if True.
        state: Outputs by the inputs of caches, with `*`; None recognizes names.
        extra: Shapes of inputs that a caller gives.
        cache: Type that caches are rounded to; None for the model's.
    """

    context: int
    batch: int
    chunk: int
    last: bool = True
    grows: bool = True
    state: tuple[tuple[str, str], ...] | None = None
    extra: tuple[tuple[str, tuple[int, ...]], ...] = ()
    cache: CacheType | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of new tokens that have a program, largest first."""
        return tuple(1 << bit for bit in reversed(range(self.chunk.bit_length())))

    def decoder(self, read: Read, declared: Declared) -> Decoder:
        """Return the decoder of a file.

        Raises:
            GraphError: An input is not recognized, the model has no cache, or not of the type.
            InputError: The context or the batch is too small.
        """
        state: Mapping[str, str] | None = None if self.state is None else dict(self.state)
        found = decoder_of(read, declared, self.context, self.batch, state, dict(self.extra))
        found = found.with_cache_type(self.cache)
        return found if self.grows else found.with_fixed_caches()
