"""Sessions whose steps a test releases one by one."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.frontend.gguf.written import written
from tests.text.vocabularies import chat_fields
from tightship._core import StopFlag
from tightship.driver.texts.answer import Asked, Ended
from tightship.driver.texts.session_slots import Slot
from tightship.errors import InputError
from tightship.frontend.gguf.vocabulary import open_vocabulary
from tightship.text import Generation, Sampling, Tokenizer
from tightship.text.generation import Wanted

TOKENIZER = Tokenizer(
    open_vocabulary(written({"general.architecture": "llama", **chat_fields()}, {}))
)
GREEDY = Sampling(temperature=0)
A = TOKENIZER.encode("a", begin=False)[0]


class ScriptedSession:
    """Session that always goes on with one token, and notes its steps in a list of all."""

    def __init__(self, name: str, steps: list[tuple[str, int]]) -> None:
        self.name, self.steps = name, steps
        self.context, self.length, self.is_closed = 256, 0, False
        self.hold: threading.Semaphore | None = None
        self.error: Exception | None = None

    def answer(self, tokens: Sequence[int], wanted: Wanted, flag: StopFlag) -> Generation:
        self.length, self.flag = 0, flag
        return Generation(self, TOKENIZER, tokens, wanted)

    def step_on(self, tokens: Sequence[int]) -> NDArray[Any]:
        if self.hold is not None:
            self.hold.acquire()
        if self.error is not None:
            raise self.error
        self.steps.append((self.name, len(tokens)))
        self.length += len(tokens)
        logits = np.zeros(TOKENIZER.size, np.float32)
        logits[A] = 1
        return logits

    def close(self) -> None:
        self.is_closed = True


class ScriptedSlots:
    """Such sessions, handed out in order."""

    context = 256
    joint: Any = None

    def __init__(self, *names: str) -> None:
        self.steps: list[tuple[str, int]] = []
        self.sessions = [ScriptedSession(name, self.steps) for name in names]
        self._idle: list[Any] = [Slot(each) for each in self.sessions]  # type: ignore[arg-type]
        self.count = len(names)

    def take(self, _prompt: Sequence[int], _tokens: int) -> Any:
        return self._idle.pop(0) if self._idle else None

    def give_back(self, slot: Any) -> None:
        self._idle.append(slot)

    def close(self) -> None:
        for session in self.sessions:
            session.close()


class ScriptedJoint:
    """Joint steps of such sessions, noted with their number; they may fail."""

    def __init__(self, steps: list[tuple[str, int]]) -> None:
        self.steps, self.fails, self.logit = steps, False, 1.0

    def step(self, sessions: Sequence[ScriptedSession], tokens: Sequence[int]) -> NDArray[Any]:
        if self.fails:
            raise InputError("one of them fails")
        self.steps.append(("+".join(each.name for each in sessions), len(tokens)))
        for session in sessions:
            session.length += 1
        logits = np.zeros((len(tokens), TOKENIZER.size), np.float32)
        logits[:, A] = 1
        logits[0, A] = self.logit
        return logits


class Waiting:
    """A request, and what it was told."""

    def __init__(self, prompt: int = 2, max_tokens: int = 3, sampling: Sampling = GREEDY) -> None:
        self.said: list[str | Ended] = []
        self._over = threading.Event()
        self.asked = Asked([1] * prompt, Wanted(sampling, max_tokens), self._report)

    def _report(self, said: str | Ended) -> None:
        self.said.append(said)
        if isinstance(said, Ended):
            self._over.set()

    def end(self) -> Ended:
        """Return the end, once it has come."""
        assert self._over.wait(20)
        assert isinstance(self.said[-1], Ended)
        return self.said[-1]
