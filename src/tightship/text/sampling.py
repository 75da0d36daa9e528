"""Choice of the next token from logits."""

import os
from collections import deque
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.errors import InputError

RECENT = 64
"""Tokens before the next one that a penalty makes less likely."""
SEED_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """Rules by which a token is chosen, applied in the order of these fields, temperature last.

    Attributes:
        repeat_penalty: Divisor of the logits of the last 64 tokens, from 1, which changes nothing.
        top_k: Most tokens to choose of, the likeliest; 0 for all.
        top_p: Probability that the likeliest tokens to choose of reach together, up to 1.
        min_p: Probability that a token has at least, as a share of the likeliest one's.
        temperature: Divisor of logits; 0 takes the likeliest token.
        seed: Seed of the choice; None for another at each use.
    """

    repeat_penalty: float = 1.0
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    temperature: float = 0.8
    seed: int | None = None

    def __post_init__(self) -> None:
        bounds = {
            "repeat_penalty": (1.0, 10.0), "top_k": (0, 1 << 31), "top_p": (0.0, 1.0),
            "min_p": (0.0, 1.0), "temperature": (0.0, 100.0),
        }  # fmt: skip
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not least <= value <= most:  # NaN fits nowhere
                raise InputError(f"`{name}` is {value}; it must be from {least:g} to {most:g}.")
        if self.seed is not None and not 0 <= self.seed <= SEED_MAX:
            raise InputError(f"`seed` is {self.seed}; it must be from 0 to {SEED_MAX}.")


class Sampler:
    """Chooses the tokens of one answer.

    Attributes:
        seed: Seed of the choices, with which they can be repeated.
    """

    def __init__(self, rules: Sampling) -> None:
        """Begin an answer."""
        self.seed = int.from_bytes(os.urandom(4)) if rules.seed is None else rules.seed
        self._rules, self._random = rules, Random(self.seed)
        self._recent: deque[int] = deque(maxlen=RECENT)

    def note(self, *tokens: int) -> None:
        """Note tokens that came, in order, of which the penalty makes the last less likely."""
        self._recent.extend(tokens)

    def choose(self, logits: NDArray[Any]) -> int:
        """Choose a token.

        Args:
            logits: Logits of all tokens, `[vocabulary]`; they are left as they are.

        Raises:
            InputError: The logits of the likeliest tokens are not finite.
        """
        rules = self._rules
        if rules.repeat_penalty != 1.0 and self._recent:
            logits = self._less_likely(logits)
        if rules.temperature == 0:
            return int(logits.argmax())
        tokens, kept = _likeliest(logits, rules.top_k)
        if not np.isfinite(kept[0]) or np.isnan(kept[-1]):  # NaN is sorted to the end
            raise InputError(
                "The logits of the likeliest tokens are not finite: the model overflows, or its "
                "file is damaged. Load another file."
            )
        shares = np.exp(kept - kept[0])
        shares /= shares.sum()
        count = min(_reaching(shares, rules.top_p), int((shares >= rules.min_p * shares[0]).sum()))
        shares = np.exp((kept[:count] - kept[0]) / rules.temperature)
        reached = np.cumsum(shares)
        place = np.searchsorted(reached, self._random.random() * reached[-1], side="right")
        return int(tokens[min(int(place), count - 1)])

    def _less_likely(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Return logits with those of recent tokens made smaller."""
        found = logits.copy()
        places = np.array(sorted(set(self._recent)))
        recent = found[places]
        penalty = self._rules.repeat_penalty
        found[places] = np.where(recent > 0, recent / penalty, recent * penalty)
        return found


def _likeliest(logits: NDArray[Any], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the likeliest tokens, all if `count` is 0, and their logits in float64, falling."""
    if 0 < count < len(logits):
        tokens = np.argpartition(logits, len(logits) - count)[len(logits) - count :]
    else:
        tokens = np.arange(len(logits))
    kept = logits[tokens].astype(np.float64)
    order = np.lexsort((tokens, -kept))  # equal logits in the order of the tokens
    return tokens[order], kept[order]


def _reaching(shares: NDArray[Any], wanted: float) -> int:
    """Return how many of the falling shares reach a share together."""
    if wanted >= 1:
        return len(shares)
    return min(int(np.searchsorted(np.cumsum(shares), wanted)) + 1, len(shares))
