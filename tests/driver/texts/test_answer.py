"""Answers that are asked for."""

from tests.driver.texts.scripted import Waiting


def test_an_answer_may_reach_its_most_tokens_within_the_context() -> None:
    asked = Waiting(prompt=10, max_tokens=5).asked
    assert (asked.tokens_max(64), asked.tokens_max(12)) == (15, 12)
