"""The executor that poisons finds a plan that lets a buffer die too early."""

from dataclasses import replace

import numpy as np
import pytest

import tightship
from tests.zoo.networks import ALL, network
from tests.zoo.oracle import assert_same_bits
from tests.zoo.stepwise import readable, run_poisoned
from tightship.engine.limits import Limits


@pytest.mark.parametrize("name", ALL)
def test_no_step_of_a_network_reads_bytes_that_are_not_alive(name: str) -> None:
    case, _ = network(name)
    with tightship.load(case.model) as model:
        assert_same_bits(run_poisoned(model, case.feeds), model.run(case.feeds))


def test_a_lifetime_that_ends_too_early_shows() -> None:
    case, _ = network("residual")
    with tightship.load(case.model) as model:
        right = model.run(case.feeds)
        with model._programs.reserved(model._key, Limits()) as (program, _):
            plan = program.executable.placement.schedule_plan.plan
        longest = int(np.argmax(plan.problem.stop_step - plan.problem.start_step))
        stop = plan.problem.stop_step.copy()
        stop[longest] = plan.problem.start_step[longest] + 1
        object.__setattr__(plan, "problem", replace(plan.problem, stop_step=stop))
        wrong = run_poisoned(model, case.feeds)
    assert any(not np.array_equal(wrong[name], right[name]) for name in right)


def test_bytes_are_readable_from_the_step_after_their_first_to_their_last() -> None:
    case, _ = network("residual")
    with tightship.load(case.model) as model:
        with model._programs.reserved(model._key, Limits()) as (program, _):
            executable = program.executable
        size, steps = model.plan.arena_bytes, len(model.plan.steps)
        counts = [int(readable(executable, step, size).sum()) for step in range(steps)]
    assert counts[0] == 0
    assert all(count <= s.load_bytes for count, s in zip(counts, model.plan.steps, strict=True))
    assert max(counts) > 0
