"""Networks as people export them, against ONNX Runtime and against ourselves."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tightship
from tests.zoo import networks
from tests.zoo.arena import LARGE, NOT_A_NUMBER, poison
from tests.zoo.networks import ALL, STATIC, network
from tests.zoo.oracle import assert_near, assert_same_bits, expected
from tests.zoo.transformer import decoder, encoder
from tightship.engine.lower.pipeline import pass_names


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ALL)
def test_a_network_gives_what_onnxruntime_gives(name: str, threads: int) -> None:
    case, wanted = network(name)
    with tightship.load(case.model, threads=threads) as model:
        assert_near(model.run(case.feeds), wanted)


@pytest.mark.parametrize("left_out", pass_names())
@pytest.mark.parametrize("name", STATIC)
def test_a_network_gives_the_same_without_any_one_pass(name: str, left_out: str) -> None:
    case, wanted = network(name)
    with tightship.load(case.model, without=(left_out,)) as model:
        assert_near(model.run(case.feeds), wanted)


@pytest.mark.parametrize("name", ALL)
def test_a_network_gives_the_same_without_all_passes(name: str) -> None:
    case, wanted = network(name)
    with tightship.load(case.model, without=pass_names()) as model:
        assert not any(step.kernel == "onednn" for step in model.plan.steps)
        assert_near(model.run(case.feeds), wanted)


@pytest.mark.parametrize("name", ALL)
def test_nothing_depends_on_what_the_arena_held(name: str) -> None:
    case, _ = network(name)
    with tightship.load(case.model) as model:
        first = model.run(case.feeds)
        for byte in (NOT_A_NUMBER, LARGE):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds), first)


@pytest.mark.parametrize("name", ALL)
def test_threads_that_share_a_model_give_what_one_gives(name: str) -> None:
    case, _ = network(name)
    with tightship.load(case.model) as model, ThreadPoolExecutor(4) as threads:
        alone = model.run(case.feeds)
        for results in threads.map(lambda _: model.run(case.feeds), range(16)):
            assert_same_bits(results, alone)


@pytest.mark.parametrize("name", ALL)
def test_an_input_is_left_as_it_was(name: str) -> None:
    case, _ = network(name)
    before = {key: array.copy() for key, array in case.feeds.items()}
    with tightship.load(case.model) as model:
        model.run(case.feeds)
    assert_same_bits(case.feeds, before)


@pytest.mark.parametrize("name", ALL)
def test_an_arena_is_within_two_percent_of_its_lower_bound(name: str) -> None:
    plan = tightship.plan(network(name)[0].model)
    assert plan.lower_bound_bytes <= plan.arena_bytes <= 1.02 * plan.lower_bound_bytes


@pytest.mark.parametrize("name", STATIC)
def test_every_byte_is_planned_where_shapes_are_known(name: str) -> None:
    plan = tightship.plan(network(name)[0].model)
    assert [step for step in plan.steps if step.dynamic_reason] == []


@pytest.mark.parametrize("name", networks.DYNAMIC)
def test_a_plan_lists_the_steps_that_allocate(name: str) -> None:
    plan = tightship.plan(network(name)[0].model)
    assert not plan.is_exact
    assert all(step.kernel == "reference" for step in plan.steps if step.dynamic_reason is not None)


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.slow
def test_an_encoder_of_the_size_of_bert_gives_what_onnxruntime_gives(*, decomposed: bool) -> None:
    case = encoder(12, 768, 12, 128, decomposed=decomposed)
    with tightship.load(case.model) as model:
        assert model.plan.is_exact
        assert model.plan.arena_bytes <= 1.02 * model.plan.lower_bound_bytes
        results = model.run(case.feeds)
    assert_near(results, expected(case.model, case.feeds))
    assert all(np.isfinite(array).all() for array in results.values())


@pytest.mark.slow
def test_a_decoder_of_the_size_of_gpt_2_gives_what_onnxruntime_gives() -> None:
    case = decoder(2, 768, 12, 128)
    with tightship.load(case.model) as model:
        assert model.plan.is_exact
        assert model.plan.arena_bytes <= 1.02 * model.plan.lower_bound_bytes
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))
