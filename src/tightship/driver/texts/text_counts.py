"""Counts of answers and tokens of language models and encoders, for Prometheus."""

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tightship.driver.oip.request_counts import escaped
from tightship.driver.texts.answer import Ended
from tightship.errors import StoppedError

BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 60.0)
"""Bounds of the histogram of times to a first token."""
FIRST = "tightship_text_first_token_seconds"
ENDED = "tightship_text_answers"
REASONS = ("stop", "length", "left", "failed")


@dataclass(slots=True)
class TextCounts:
    """Counts of one model. May be used from several threads.

    Attributes:
        prompt_tokens: Tokens of prompts of answers that ended well.
        cached_tokens: Those of them that sessions had already.
        tokens: Tokens of these answers.
        refused: Requests that found no place to wait.
        ended: Answers by why they ended: one of `REASONS`.
        first: Answers by the time to their first token, in the intervals of `BOUNDS_S`.
        first_s: Sum of these times.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    refused: int = 0
    ended: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    first: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    first_s: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, seconds: float) -> None:
        """Count a first token, so many seconds after its request came."""
        with self._lock:
            self.first[bisect_left(BOUNDS_S, seconds)] += 1
            self.first_s += seconds

    def end(self, end: Ended) -> None:
        """Count the end of an answer."""
        reason: str = end.finish_reason or "failed"
        reason = "left" if isinstance(end.error, StoppedError) else reason
        with self._lock:
            self.ended[reason] += 1
            self.prompt_tokens += end.prompt_tokens
            self.cached_tokens += end.cached_tokens
            self.tokens += end.tokens

    def refuse(self) -> None:
        """Count a request that found no place to wait."""
        with self._lock:
            self.refused += 1


@dataclass(frozen=True, slots=True)
class TextState:
    """State of one model now.

    Attributes:
        name: Name of the model.
        counts: Its counts.
        running: Sessions that answers use.
        waiting: Requests that wait for one.
        sessions: Sessions that there are.
    """

    name: str
    counts: TextCounts
    running: int = 0
    waiting: int = 0
    sessions: int = 0


_METRICS: tuple[tuple[str, str, str, Callable[[TextState], int]], ...] = (
    ("prompt_tokens", "counter", "Tokens of prompts", lambda s: s.counts.prompt_tokens),
    ("cached_tokens", "counter", "Tokens of prompts that sessions had already",
     lambda s: s.counts.cached_tokens),
    ("completion_tokens", "counter", "Tokens of answers", lambda s: s.counts.tokens),
    ("refused", "counter", "Requests that found no place to wait", lambda s: s.counts.refused),
    ("running", "gauge", "Sessions that answers use now", lambda s: s.running),
    ("sessions", "gauge", "Sessions that there are", lambda s: s.sessions),
    ("waiting", "gauge", "Requests that wait for a session now", lambda s: s.waiting),
)  # fmt: skip


def text_metrics(states: Iterable[TextState]) -> str:
    """Return the metrics of models in Prometheus' text format."""
    known, lines = [(f'model="{escaped(each.name)}"', each) for each in states], list[str]()
    for short, kind, text, value in _METRICS:
        name = f"tightship_text_{short}"
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{labels}}} {value(state)}" for labels, state in known]
    lines += [f"# HELP {ENDED} Answers by why they ended", f"# TYPE {ENDED} counter"]
    for labels, state in known:
        for reason, count in state.counts.ended.items():
            lines.append(f'{ENDED}{{{labels},reason="{reason}"}} {count}')
    lines += [f"# HELP {FIRST} Seconds from a request to its first token",
              f"# TYPE {FIRST} histogram"]  # fmt: skip
    for labels, state in known:
        lines += _histogram(labels, state.counts)
    return "\n".join(lines) + "\n"


def _histogram(labels: str, counts: TextCounts) -> list[str]:
    """Return the series of the times to a first token."""
    lines, so_far = [], 0
    for bound, count in zip((*BOUNDS_S, "+Inf"), counts.first, strict=True):
        so_far += count
        lines.append(f'{FIRST}_bucket{{{labels},le="{bound}"}} {so_far}')
    return [*lines, f"{FIRST}_sum{{{labels}}} {counts.first_s!r}",
            f"{FIRST}_count{{{labels}}} {so_far}"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class EncoderCounts:
    """Counts of the answers of one encoder.

    Attributes:
        texts: Texts, or pairs of texts, of requests that ended well.
        tokens: Their tokens.
    """

    texts: int = 0
    tokens: int = 0


def encoder_metrics(models: Mapping[str, EncoderCounts], pending: int) -> str:
    """Return the metrics of encoders in Prometheus' text format.

    Args:
        models: Counts by the names of the models.
        pending: Requests that run or wait now.
    """
    lines = []
    for short, text in (("texts", "Texts, or pairs of texts"), ("tokens", "Tokens of texts")):
        name = f"tightship_encoder_{short}"
        lines += [f"# HELP {name} {text}", f"# TYPE {name} counter"]
        lines += [
            f'{name}{{model="{escaped(model)}"}} {getattr(counts, short)}'
            for model, counts in models.items()
        ]
    name = "tightship_encoder_pending"
    lines += [f"# HELP {name} Requests that run or wait now", f"# TYPE {name} gauge"]
    return "\n".join([*lines, f"{name} {pending}"]) + "\n"
