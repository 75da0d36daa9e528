"""Answers of one model, by turns in one thread."""

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.driver.test_run_permits import until
from tests.driver.texts.scripted import ScriptedJoint, ScriptedSlots, Waiting
from tightship.driver.texts.text_worker import BusyError, TextWorker
from tightship.errors import CapacityError, StoppedError
from tightship.text import Sampling

Make = Callable[[ScriptedSlots, int], TextWorker]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[TextWorker] = []

    def worker(slots: ScriptedSlots, waiting: int) -> TextWorker:
        made.append(TextWorker("m", slots, waiting))  # type: ignore[arg-type]
        return made[-1]

    yield worker
    for each in made:
        each.stop()
        each.end()
        each.join()


def held(*names: str) -> tuple[ScriptedSlots, threading.Semaphore]:
    """Slots whose first session waits before each step."""
    slots, hold = ScriptedSlots(*names), threading.Semaphore(0)
    slots.sessions[0].hold = hold
    return slots, hold


def test_an_answer_comes_in_pieces_and_then_its_counts(make: Make) -> None:
    request = Waiting()
    make(ScriptedSlots("a"), 0).ask(request.asked)
    end = request.end()
    assert request.said == [" a", " a", " a", end]
    assert (end.finish_reason, end.prompt_tokens, end.tokens) == ("length", 2, 3)


def test_answers_take_turns_and_a_long_prompt_runs_in_parts(make: Make) -> None:
    slots, hold = held("a", "b")
    worker = make(slots, 4)
    first, second = Waiting(max_tokens=3), Waiting(prompt=200, max_tokens=2)
    worker.ask(first.asked)
    worker.ask(second.asked)
    until(lambda: worker.load == (2, 0) or bool(slots.steps))
    hold.release(9)
    first.end()
    second.end()
    order = "".join(name for name, _ in slots.steps)
    assert order in ("ababab", "aabab" + "b")  # the second came before or after a first step
    assert [size for name, size in slots.steps if name == "b"] == [128, 72, 1]


@pytest.mark.parametrize("fails", [False, True])
def test_answers_that_read_a_token_run_together(make: Make, fails: bool) -> None:
    slots, hold = held("a", "b", "c")
    slots.joint = ScriptedJoint(slots.steps)
    slots.joint.fails = fails
    worker = make(slots, 4)
    requests = [Waiting(max_tokens=3) for _ in range(3)]
    for each in requests:
        worker.ask(each.asked)
    until(lambda: worker.load == (3, 0))
    hold.release(9)
    assert [each.end().tokens for each in requests] == [3] * 3
    together = [step for step in slots.steps if "+" in step[0]]
    assert bool(together) != fails
    assert {count for _, count in together} <= {2}
    assert len(slots.steps) == 9 - len(together)


def test_an_answer_that_cannot_go_on_ends_alone(make: Make) -> None:
    slots, hold = held("a", "b")
    slots.joint = ScriptedJoint(slots.steps)
    slots.joint.logit = float("nan")
    worker = make(slots, 2)
    requests = [Waiting(sampling=Sampling(seed=1)), Waiting()]
    for each in requests:
        worker.ask(each.asked)
    until(lambda: worker.load == (2, 0))
    hold.release(9)
    assert "not finite" in str(requests[0].end().error)
    assert requests[1].end().tokens == 3
    last = Waiting()
    worker.ask(last.asked)
    assert last.end().tokens == 3


def test_requests_wait_in_order_up_to_a_bound(make: Make) -> None:
    slots, hold = held("a")
    worker = make(slots, 1)
    requests = [Waiting(max_tokens=1) for _ in range(2)]
    worker.ask(requests[0].asked)
    until(lambda: worker.load[0] == 1)
    worker.ask(requests[1].asked)
    with pytest.raises(BusyError, match="1 answers run and 1 requests wait") as caught:
        worker.ask(Waiting().asked)
    assert caught.value.retry_s >= 1
    hold.release(9)
    assert [each.end().finish_reason for each in requests] == ["length"] * 2


def test_a_client_that_leaves_frees_its_session_after_the_current_step(make: Make) -> None:
    slots, hold = held("a")
    worker = make(slots, 4)
    first, second = Waiting(max_tokens=99), Waiting(max_tokens=1)
    worker.ask(first.asked)
    until(lambda: worker.load[0] == 1)
    worker.ask(second.asked)
    first.asked.flag.set()
    hold.release(2)  # the step that runs, and the one of the second
    assert isinstance(first.end().error, StoppedError)
    assert second.end().finish_reason == "length"


def test_a_client_that_leaves_the_queue_is_told(make: Make) -> None:
    slots, hold = held("a")
    worker = make(slots, 4)
    first, second = Waiting(max_tokens=1), Waiting()
    worker.ask(first.asked)
    until(lambda: worker.load[0] == 1)
    worker.ask(second.asked)
    second.asked.flag.set()
    worker.wake()
    hold.release(9)
    assert isinstance(second.end().error, StoppedError)
    assert first.end().error is None


def test_an_answer_that_fails_does_not_disturb_others(make: Make) -> None:
    slots = ScriptedSlots("a")
    worker = make(slots, 4)
    slots.sessions[0].error = CapacityError("full", needed_bytes=2, limit_bytes=1)
    bad = Waiting()
    worker.ask(bad.asked)
    assert isinstance(bad.end().error, CapacityError)
    slots.sessions[0].error = None
    good = Waiting()
    worker.ask(good.asked)
    assert good.end().finish_reason == "length"


def test_the_end_closes_the_sessions_once_all_is_answered(make: Make) -> None:
    slots, hold = held("a")
    worker = make(slots, 4)
    request = Waiting(max_tokens=1)
    worker.ask(request.asked)
    worker.end()
    with pytest.raises(BusyError):
        worker.ask(Waiting().asked)
    hold.release(9)
    assert request.end().finish_reason == "length"
    worker.join()
    assert slots.sessions[0].is_closed
