"""Steps of several sessions at once."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.text.vocabularies import chat_model
from tightship.errors import CapacityError, GraphError, InputError
from tightship.model import Model
from tightship.model.joint_steps import JointSteps

PROMPTS = [[1, 20, 21], [1, 5], [1, 9, 9, 9, 9], [1, 33]]


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with tightship.load(chat_model()) as loaded:
        yield loaded


def opened(model: Model, **options: Any) -> list[Any]:
    sessions = [model.session(64, **options) for _ in PROMPTS]
    for session, prompt in zip(sessions, PROMPTS, strict=True):
        session.step(prompt)
    return sessions


@pytest.mark.parametrize("options", [{}, {"cache": "int8"}, {"share_prefix": True}])
def test_each_session_has_the_logits_of_its_own_step(model: Model, options: Any) -> None:
    sessions, alone = opened(model, **options), opened(model, **options)
    joint = JointSteps.of(sessions[0])
    tokens = [3, 4, 5, 6]
    for count in (4, 2, 4):
        found = joint.step(sessions[:count], tokens[:count])
        wanted = [s.step([t])[0, -1] for s, t in zip(alone, tokens[:count], strict=False)]
        np.testing.assert_array_equal(found, wanted)
        tokens = [int(each) for each in found.argmax(-1)] + tokens[count:]
    assert [each.length for each in sessions] == [each.length for each in alone]
    assert joint.planned_bytes(4) > 0
    joint.close()


def test_caches_in_the_place_of_others_that_are_gone_are_bound_anew(model: Model) -> None:
    sessions = opened(model)[:2]
    joint = JointSteps.of(sessions[0])
    joint.step(sessions, [3, 4])
    program = joint._made[2]
    bound = []
    for _ in range(9):
        caches = [{**each._rows.arrays} for each in sessions]
        bound.append(program.fixed(caches))
        del caches  # CPython gives the next ones the same addresses
    assert len(set(map(id, bound))) == 9
    joint.close()


def test_sessions_that_lost_their_rows_compute_them_again(model: Model) -> None:
    pool = tightship.SessionPool("1MiB", at_cap="evict")
    sessions, alone = opened(model, pool=pool), opened(model)
    assert sessions[1]._idle.evict()
    found = JointSteps.of(sessions[0]).step(sessions[:2], [3, 4])
    wanted = [s.step([t])[0, -1] for s, t in zip(alone, [3, 4], strict=False)]
    np.testing.assert_array_equal(found, wanted)


def test_a_step_that_cannot_be_leaves_all_sessions_as_they_were(model: Model) -> None:
    sessions, alone = opened(model), opened(model)
    joint = JointSteps.of(sessions[0])
    with model.session(32) as other, pytest.raises(InputError, match="different programs"):
        joint.step([sessions[0], other], [1, 1])
    sessions[1].step([7] * (64 - sessions[1].length))
    with pytest.raises(InputError, match="has 64 tokens, as many as its context"):
        joint.step(sessions[:2], [1, 1])
    assert sessions[0].length == len(PROMPTS[0])
    np.testing.assert_array_equal(sessions[0].step([3]), alone[0].step([3]))


def test_a_pool_that_is_full_refuses_before_anything_is_written(model: Model) -> None:
    with model.session(64) as one:
        whole = one.state_bytes
    pool = tightship.SessionPool(whole)
    sessions = [model.session(64, pool=pool) for _ in range(2)]
    sessions[0].step([1] * 60)
    with pytest.raises(CapacityError):
        JointSteps.of(sessions[0]).step(sessions, [1, 1])
    assert [each.length for each in sessions] == [60, 0]


def test_models_that_take_several_texts_have_none() -> None:
    with (
        tightship.load(decoders.llama()) as model,
        model.session(16, batch=2) as session,
        pytest.raises(GraphError, match="no program for several sessions"),
    ):
        JointSteps.of(session).planned_bytes(2)
