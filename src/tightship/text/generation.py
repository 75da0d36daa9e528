"""An answer of a model, token by token."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from tightship.errors import InputError
from tightship.public_calls import public_methods
from tightship.text.sampling import Sampler, Sampling
from tightship.text.streamed import TextStream
from tightship.text.tokenizer import Tokenizer

PART_TOKENS = 128
"""Most tokens of a prompt that run at once, so that others need not wait for all of it."""
Finish = Literal["stop", "length"]


class TokenSource(Protocol):
    """Session of a model, as an answer reads it."""

    @property
    def length(self) -> int:
        """Tokens that it has."""

    @property
    def context(self) -> int:
        """Most tokens that it can have."""

    def step_on(self, tokens: Sequence[int]) -> NDArray[Any]:
        """Append tokens; return the logits of the last one, `[vocabulary]`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Answer that is wanted.

    Attributes:
        sampling: Rules by which tokens are chosen.
        max_tokens: Most tokens; None for as many as the context holds.
        stop: Texts that end it.
        schema: Text of a JSON schema that it follows; None for any text.
    """

    sampling: Sampling = field(default_factory=Sampling)
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    schema: str | None = None

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"`max_tokens` is {self.max_tokens}; it must be at least 1.")


@public_methods
class Generation(Iterator[str]):
    """Answer of a model, an iterator over pieces of its text.

    Each step of it runs the model once, in the thread that asks for the next piece. The session
    keeps what came, also if the answer is left early.

    Attributes:
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Tokens of the prompt that the session had already.
        tokens: Numbers of the tokens that came, without one that ends the answer.
        finish_reason: `"stop"` after a token or text that ends the answer, `"length"` after
            `max_tokens` or the end of the context, None before.
        seed: Seed of the choices.
    """

    def __init__(
        self,
        session: TokenSource,
        tokenizer: Tokenizer,
        prompt: Sequence[int],
        wanted: Wanted,
        *,
        cached: int = 0,
    ) -> None:
        """Begin an answer; the prompt runs when the first piece is asked for.

        Args:
            session: Session, which may have tokens before the prompt.
            tokenizer: Tokenizer of the model.
            prompt: Tokens to append, at least one.
            wanted: The answer that is wanted.
            cached: Tokens of the prompt before these that the session has.

        Raises:
            InputError: The prompt is empty, or longer than the context has room for; the schema
                cannot be followed.
        """
        check_prompt(len(prompt), session.length, session.context)
        self.prompt_tokens, self.cached_tokens = cached + len(prompt), cached
        self.tokens: list[int] = []
        self.finish_reason: Finish | None = None
        self._session, self._tokenizer, self._wanted = session, tokenizer, wanted
        self._waiting: Sequence[int] = prompt
        self._sampler = Sampler(wanted.sampling)
        self._sampler.note(*prompt[-64:])
        self._stream = TextStream(wanted.stop)
        self.seed = self._sampler.seed
        self._followed = None if wanted.schema is None else tokenizer.follow(wanted.schema)

    def __iter__(self) -> "Generation":
        return self

    def __next__(self) -> str:
        """Return the next piece of the text, never empty.

        Raises:
            StopIteration: The answer has ended.
            InputError, StoppedError, ...: As `Session.step`.
        """
        while self.finish_reason is None:
            piece = self.advance()
            if piece:
                return piece
        raise StopIteration

    def advance(self) -> str:
        """Run the model once, on at most 128 tokens of a prompt; return the text that is certain.

        A caller that takes several answers by turns uses it instead of `next`.

        Raises:
            InputError, StoppedError, ...: As `Session.step`; it may be called again.
        """
        return self.go_on(self._session.step_on(self.part))

    @property
    def part(self) -> Sequence[int]:
        """Tokens that the next run of the model reads: a part of the prompt, or the last token."""
        return self._waiting[:PART_TOKENS]

    def go_on(self, logits: NDArray[Any]) -> str:
        """Go on after a run of the model on `part`; return the text that is certain.

        Args:
            logits: Logits of the last token, `[vocabulary]`.
        """
        self._waiting = self._waiting[PART_TOKENS:]
        if self._waiting:
            return ""
        followed = self._followed
        token = self._sampler.choose(logits if followed is None else followed.masked(logits))
        if token in self._tokenizer.ends:
            return self._finished("stop")
        if followed is not None:
            followed.take(token)
        self.tokens.append(token)
        self._sampler.note(token)
        self._waiting = [token]
        piece = self._stream.add(self._tokenizer.piece(token))
        if self._stream.is_stopped:
            self.finish_reason = "stop"
        elif followed is not None and followed.is_over:
            piece += self._finished("stop")
        elif len(self.tokens) == self._wanted.max_tokens or not self._has_room():
            piece += self._finished("length")
        return piece

    def _has_room(self) -> bool:
        return self._session.length < self._session.context

    def _finished(self, reason: Finish) -> str:
        self.finish_reason = reason
        return self._stream.end()

    @property
    def unread(self) -> Sequence[int]:
        """Tokens that came last and that the session has not got yet."""
        return self._waiting if self.tokens else ()

    def text(self) -> str:
        """Return the rest of the answer."""
        return "".join(self)

    def __repr__(self) -> str:
        state = self.finish_reason or "running"
        return f"<tightship.text.Generation: {len(self.tokens)} tokens, {state}>"


def check_prompt(count: int, before: int, context: int) -> None:
    """Check that a prompt of some tokens has room in a session.

    Raises:
        InputError: It is empty, or leaves no room for an answer.
    """
    if not count:
        raise InputError("The prompt has no tokens; give a text that is not empty.")
    if before + count > context:
        after = f" after {before}" if before else ""
        raise InputError(
            f"The prompt has {count} tokens{after}; the context holds {context}. Shorten the "
            "prompt, or open a session with a larger context."
        )


def check_size(text: str, tokenizer: Tokenizer, context: int) -> None:
    """Check that a text is not so long that its tokens, however they are found, have no room.

    Raises:
        InputError: It is; its tokens need not be found to know.
    """
    least = -(-len(text.encode(errors="replace")) // tokenizer.longest_bytes)
    if least > context:
        raise InputError(
            f"The prompt has at least {least} tokens; the context holds {context}. Shorten the "
            "prompt, or open a session with a larger context."
        )


TokenizerSource = Callable[[], Tokenizer]
"""Function that returns the tokenizer of a model."""
