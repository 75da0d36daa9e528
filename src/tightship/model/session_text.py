"""Part of `Session` that goes on with texts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship._core import StopFlag
from tightship.errors import InputError
from tightship.public_calls import explains_memory, public_methods

if TYPE_CHECKING:
    from tightship.text.generation import Generation, TokenizerSource, Wanted
    from tightship.text.tokenizer import Tokenizer


@public_methods
class SessionText:
    """Session of a model that may have a tokenizer."""

    _tokenizer: "TokenizerSource | None" = None
    _known_uses = 0
    """Calls after which `_written` has the session's tokens."""
    _written: list[int] | None = None
    _last: "Generation | None" = None
    _flag: StopFlag | None = None

    @property
    def _uses(self) -> int:
        """Calls that have used the session."""
        raise NotImplementedError

    @property
    def length(self) -> int:
        """Tokens that the session has."""
        raise NotImplementedError

    @property
    def context(self) -> int:
        """Most tokens that the caches can have."""
        raise NotImplementedError

    def step(
        self, tokens: ArrayLike, *, timeout_s: float | None = None, stop: StopFlag | None = None
    ) -> NDArray[Any]:
        """Append tokens, and return the logits of the last one, or of all."""
        raise NotImplementedError

    def truncate(self, length: int) -> None:
        """Forget all tokens but the first ones."""
        raise NotImplementedError

    @explains_memory("an answer of a session")
    def generate(
        self,
        prompt: str | Sequence[int] | Sequence[Mapping[str, Any]],
        *,
        max_tokens: int | None = None,
        temperature: float = 0.8,
        top_k: int = 40,
        top_p: float = 0.95,
        min_p: float = 0.05,
        repeat_penalty: float = 1.0,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
        schema: str | Mapping[str, Any] | None = None,
        flag: StopFlag | None = None,
    ) -> "Generation":
        """Go on with a text, a piece at a time.

            for piece in session.generate("The capital of France is", max_tokens=16):
                print(piece, end="", flush=True)

        The session keeps the prompt and the answer; a further prompt goes on behind them. Messages
        are a whole chat, written by the template of the model's file: tokens that the session has
        of its beginning are not computed again, others are forgotten. Equal prompts in equal
        sessions have equal answers if temperature is 0 or the seed is given.

        Args:
            prompt: A text, numbers of tokens, or messages with `role` and `content`.
            max_tokens: Most tokens of the answer; by default as many as the context holds.
            temperature: Divisor of logits; 0 takes the likeliest token.
            top_k: Most tokens to choose of, the likeliest; 0 for all.
            top_p: Probability that the tokens to choose of reach together.
            min_p: Probability that a token has at least, as a share of the likeliest one's.
            repeat_penalty: Divisor of the logits of the last 64 tokens; 1 changes nothing.
            seed: Seed of the choices; another each time by default.
            stop: Texts that end the answer, which they are not part of.
            schema: JSON schema that the answer follows, as a mapping or its text; needs the extra
                `tightship[schema]`. An answer that `max_tokens` ends may be incomplete.
            flag: Flag that ends a step of the answer when another thread sets it.

        Raises:
            InputError: An argument does not fit, the prompt is longer than the context, or the
                model's file has no vocabulary or no template; a package of the extra `text` is
                missing.
        """
        from tightship.text.generation import Generation, Wanted, check_size  # few have texts
        from tightship.text.sampling import Sampling
        from tightship.text.schema_guide import schema_text

        tokenizer = self.tokenizer
        stops = (stop,) if isinstance(stop, str) else tuple(stop)
        rules = Sampling(repeat_penalty, top_k, top_p, min_p, temperature, seed)
        wanted = Wanted(rules, max_tokens, stops, schema_text(schema))
        if len(prompt) and isinstance(prompt[0], Mapping):
            chat = tokenizer.chat(prompt)  # type: ignore[arg-type]
            check_size(chat, tokenizer, self.context)
            return self.answer(tokenizer.encode_chat(chat), wanted, flag)
        tokens = self._tokens_of(prompt, tokenizer)  # type: ignore[arg-type]
        self._flag = flag
        self._last = Generation(self, tokenizer, tokens, wanted)
        return self._last

    def answer(
        self, tokens: Sequence[int], wanted: "Wanted", flag: StopFlag | None = None
    ) -> "Generation":
        """Begin an answer to a whole text, of whose beginning the session keeps what it has.

        Args:
            tokens: Tokens of the text.
            wanted: The answer that is wanted.
            flag: Flag that ends a step of the answer when another thread sets it.

        Raises:
            InputError: The text is empty or longer than the context, or the model has no tokenizer.
        """
        from tightship.text.generation import Generation, check_prompt

        tokenizer = self.tokenizer
        check_prompt(len(tokens), 0, self.context)
        kept = min(self.common(tokens), len(tokens) - 1)  # the last runs, for its logits
        known = self._written or []
        self.truncate(kept)
        self._written, self._known_uses = known[:kept], self._uses
        self._flag = flag
        self._last = Generation(self, tokenizer, tokens[kept:], wanted, cached=kept)
        return self._last

    def common(self, tokens: Sequence[int]) -> int:
        """Return how many of the first tokens of a text the session has, of those it wrote."""
        known = self._written if self._known_uses == self._uses else None
        pairs = enumerate(zip(known or (), tokens, strict=False))
        return next((n for n, (a, b) in pairs if a != b), min(len(known or ()), len(tokens)))

    @property
    def tokenizer(self) -> "Tokenizer":
        """Tokenizer of the model, whose file has its vocabulary.

        Raises:
            InputError: The file has none; a package of the extra `text` is missing.
        """
        if self._tokenizer is None:
            raise InputError("The session's model has no tokenizer; give numbers of tokens.")
        return self._tokenizer()

    def _tokens_of(self, prompt: str | Sequence[int], tokenizer: "Tokenizer") -> list[int]:
        """Return the tokens to append for a prompt."""
        if not isinstance(prompt, str):
            return [*self._unread(), *np.asarray(prompt, np.int64).tolist()]
        from tightship.text.generation import check_size

        check_size(prompt, tokenizer, self.context)
        return [*self._unread(), *tokenizer.encode(prompt, begin=not self.length, end=False)]

    def _unread(self) -> Sequence[int]:
        """Return the token that an answer ended with and that the session has not got."""
        is_known = self._last is not None and self._known_uses == self._uses
        return self._last.unread if self._last is not None and is_known else ()

    def step_on(self, tokens: Sequence[int]) -> NDArray[Any]:
        """Append tokens of an answer, and return the logits of the last one, `[vocabulary]`.

        Raises:
            CapacityError, InputError, StoppedError, ...: As `step`.
        """
        before = self._known()
        logits: NDArray[Any] = self.step(list(tokens), stop=self._flag)[0, -1]
        self._note(before, tokens)
        return logits

    def _known(self) -> list[int] | None:
        """Return the tokens that the session has; None if other calls have changed them."""
        if not self.length:
            return []
        return self._written if self._known_uses == self._uses else None

    def _note(self, before: list[int] | None, tokens: Sequence[int]) -> None:
        """Note tokens that were appended to others, if those are known."""
        if before is not None:
            before.extend(tokens)
        self._written, self._known_uses = before, self._uses
