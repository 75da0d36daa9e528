"""An answer that a request waits for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from tightship._core import StopFlag
from tightship.text.generation import Finish, Wanted


@dataclass(frozen=True, slots=True)
class Ended:
    """End of an answer.

    Attributes:
        finish_reason: Why it ended; None if it failed.
        prompt_tokens: Tokens of the prompt.
        cached_tokens: Tokens of the prompt that need not run.
        tokens: Tokens of the answer.
        error: Why it failed; None if it did not.
    """

    finish_reason: Finish | None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    error: Exception | None = None


@dataclass(slots=True, eq=False)
class Asked:
    """Answer that is asked for.

    Attributes:
        prompt: Tokens of the whole prompt.
        wanted: The answer that is wanted.
        report: Function called in the model's thread with each piece of the text, and the end.
        flag: Flag that ends the answer when another thread sets it.
        came_s: Time at which it was asked for.
    """

    prompt: Sequence[int]
    wanted: Wanted
    report: Callable[[str | Ended], None]
    flag: StopFlag = field(default_factory=StopFlag)
    came_s: float = field(default_factory=monotonic)

    def tokens_max(self, context: int) -> int:
        """Return the most tokens that prompt and answer may reach."""
        most = self.wanted.max_tokens
        return context if most is None else min(context, len(self.prompt) + most)
