"""Choice of tokens."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tightship.errors import InputError
from tightship.text.sampling import Sampler, Sampling

LOGITS = np.log(np.array([0.1, 0.5, 0.05, 0.3, 0.05])).astype(np.float32)


def chosen(count: int = 200, logits: Any = LOGITS, **rules: Any) -> Counter[int]:
    given = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "temperature": 1.0, "seed": 1, **rules}
    sampler = Sampler(Sampling(**given))
    return Counter(sampler.choose(logits) for _ in range(count))


def test_temperature_0_takes_the_likeliest() -> None:
    assert chosen(temperature=0) == {1: 200}
    assert chosen(temperature=0, logits=np.zeros(4, np.float32)) == {0: 200}


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_logits_that_are_not_finite_are_refused(odd: float) -> None:
    with pytest.raises(InputError, match="not finite"):
        Sampler(Sampling()).choose(np.array([0, odd, 1], np.float32))


def test_tokens_come_as_often_as_they_are_likely() -> None:
    found = chosen(4000)
    shares = [found[token] / 4000 for token in range(5)]
    np.testing.assert_allclose(shares, np.exp(LOGITS), atol=0.03)


@pytest.mark.parametrize(
    ("rules", "tokens"),
    [
        ({"top_k": 2}, {1, 3}),
        ({"top_k": 99}, {0, 1, 2, 3, 4}),
        ({"top_p": 0.45}, {1}),
        ({"top_p": 0.79}, {1, 3}),
        ({"top_p": 0.81}, {0, 1, 3}),
        ({"top_p": 0.0}, {1}),
        ({"min_p": 0.5}, {1, 3}),
        ({"min_p": 0.15}, {0, 1, 3}),
        ({"min_p": 1.0}, {1}),
    ],
)
def test_unlikely_tokens_are_left_out(rules: dict[str, Any], tokens: set[int]) -> None:
    assert set(chosen(**rules)) == tokens


def test_a_higher_temperature_makes_choices_more_even() -> None:
    cold, warm = chosen(2000, temperature=0.3), chosen(2000, temperature=3.0)
    assert cold[1] > 1500 > warm[1]


def test_a_seed_repeats_choices_and_none_has_another_each_time() -> None:
    def sequence(seed: int | None) -> list[int]:
        sampler = Sampler(Sampling(top_k=0, temperature=5.0, seed=seed))
        return [sampler.choose(np.zeros(1000, np.float32)) for _ in range(20)]

    assert sequence(7) == sequence(7) != sequence(8)
    assert sequence(None) != sequence(None)
    assert Sampler(Sampling(seed=7)).seed == 7


def test_recent_tokens_become_less_likely() -> None:
    sampler = Sampler(Sampling(repeat_penalty=2.0, temperature=0))
    logits = np.array([3.0, 2.0, -1.0], np.float32)
    assert sampler.choose(logits) == 0
    sampler.note(0)
    assert sampler.choose(logits) == 1
    sampler.note(*[2] * 64)  # 0 is recent no longer
    assert sampler.choose(logits) == 0
    np.testing.assert_array_equal(logits, np.array([3.0, 2.0, -1.0], np.float32))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"temperature": -1}, r"`temperature` is -1; it must be from 0 to 100"),
        ({"top_p": 1.5}, r"`top_p` is 1.5; it must be from 0 to 1"),
        ({"min_p": float("nan")}, r"`min_p` is nan; it must be from 0 to 1"),
        ({"top_k": -1}, r"`top_k` is -1; it must be from 0"),
        ({"repeat_penalty": 0.5}, r"`repeat_penalty` is 0.5; it must be from 1 to 10"),
        ({"seed": -1}, r"`seed` is -1; it must be from 0"),
    ],
)
def test_rules_that_do_not_fit_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Sampling(**rules)
