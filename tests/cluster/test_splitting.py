"""Stages of models within budgets, and proofs that there are none."""

from itertools import combinations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests import small_models
from tests.zoo import light
from tightship import cluster
from tightship.cluster.cut_table import lifetimes_of, slots_of, weights_of
from tightship.cluster.splitting import Splitter
from tightship.errors import CapacityError, InputError
from tightship.planner import AliasKind

KIB = 1 << 10


def chain(tied=False, skip=False):
    """Six products of (1, 64) with matrices of 64 KiB, by request the last with the first's."""
    random = np.random.default_rng(0)
    names = ["w0", "w1", "w2", "w3", "w4", "w0" if tied else "w5"]
    weights = {name: random.standard_normal((64, 64), np.float32) for name in set(names)}
    nodes, value = [], "x"
    for index, name in enumerate(names):
        nodes.append(helper.make_node("MatMul", [value, name], [f"p{index}"]))
        nodes.append(helper.make_node("Softmax", [f"p{index}"], [f"v{index}"]))
        value = f"v{index}"
    if skip:
        nodes.append(helper.make_node("Add", [value, "v0"], ["y"]))
    else:
        nodes.append(helper.make_node("Sigmoid", [value], ["y"]))
    row = TensorProto.FLOAT, [1, 64]
    return small_models.model(nodes, [("x", *row)], [("y", *row)], weights)


@pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v1"])
def test_no_bound_is_above_the_plan_of_its_stage(name):
    found = Splitter.of(light.path_of(name), None, 1)
    last = len(found.table.cuts) - 1
    for first, stop in combinations(range(0, last + 1, max(1, last // 8)), 2):
        found.stage_bytes(first, stop)  # asserts it


@pytest.mark.parametrize("model", [chain(), chain(tied=True), chain(skip=True)])
def test_the_stages_are_the_best_of_all(model):
    found = Splitter.of(model, None, 1)
    count = len(found.table.cuts)
    sizes = [found.stage_bytes(first, stop) for first, stop in combinations(range(count), 2)]
    whole = found.stage_bytes(0, count - 1)
    for budget in (whole, whole - 1, (min(sizes) + whole) // 2, min(sizes)):
        best = best_of_two(found, budget)
        chosen = found.cuts([budget, budget])
        assert best == (chosen and (chosen.crossing_bytes, chosen.largest_bytes))


def best_of_two(found, budget):
    last = len(found.table.cuts) - 1
    whole = found.stage_bytes(0, last)
    ways = [(0, whole)] if whole <= budget else []
    for cut in range(1, last):
        largest = max(found.stage_bytes(0, cut), found.stage_bytes(cut, last))
        if largest <= budget:
            ways.append((int(found.table.crossing_bytes[cut]), largest))
    return min(ways, default=None)


def test_stages_cover_the_steps_and_receive_what_was_sent():
    plan = light.path_of("resnet50")
    found = cluster.split(plan, ["110MiB", 90 << 20])
    first, second = found.stages
    assert (first.start_step, first.stop_step) == (0, second.start_step)
    assert {first.budget, second.budget} == {0, 1}
    for stage in found.stages:
        assert stage.plan.peak_bytes <= stage.budget_bytes
    assert first.received_bytes == 0
    assert second.received_bytes == found.crossing_bytes > 0


def test_sums_in_place_can_be_cut_apart():
    found = Splitter.of(light.path_of("resnet50"), None, 1)
    kinds = [{each.kind for each in step.sharing} for step in found.lowered.steps]
    assert {i for i, kind in enumerate(kinds) if AliasKind.TIED in kind} <= {*found.table.cuts}


def test_tied_weights_are_in_both_stages():
    found = Splitter.of(chain(tied=True), None, 1)
    last = len(found.table.cuts) - 1
    middle = last // 2
    lowered = found.lowered
    cut = int(found.table.cuts[middle])
    halves = lowered.steps[:cut], lowered.steps[cut:]
    both = frozenset.intersection(*(frozenset().union(*map(weights_of, half)) for half in halves))
    assert len(both) == 1
    chosen = found.split([found.stage_bytes(0, middle), found.stage_bytes(middle, last)])
    weights = sum(stage.plan.weights_bytes for stage in chosen.stages)
    whole = sum(weight.size_bytes for weight in lowered.weights)
    assert weights == whole + lowered.weights[min(both)].size_bytes


def test_a_skip_crosses_every_cut_on_its_way():
    plain, skipping = (Splitter.of(chain(skip=skip), None, 1).table for skip in (False, True))
    row = 64 * 4
    middle = len(plain.cuts) // 2
    assert skipping.crossing_bytes[middle] == plain.crossing_bytes[middle] + row


def test_what_crosses_is_alive_on_both_sides():
    found = Splitter.of(light.path_of("squeezenet"), None, 1)
    lowered, lives = found.lowered, lifetimes_of(found.lowered)
    for cut, crossing in zip(found.table.cuts, found.table.crossing_bytes, strict=True):
        before = {slot for step in lowered.steps[:cut] for slot in slots_of(step.writes)}
        after = {slot for step in lowered.steps[cut:] for slot in slots_of(step.reads)}
        assert crossing == sum(int(lives.size_bytes[slot]) for slot in before & after)


def test_a_step_that_no_node_holds_is_named():
    with pytest.raises(CapacityError, match=r"`.*` \(Gemm\+Relu\) needs 1.*alone") as raised:
        cluster.split(light.path_of("bvlc_alexnet"), ["120MiB", "120MiB"])
    assert raised.value.needed_bytes > 120 << 20
    assert raised.value.limit_bytes == 120 << 20


def test_too_few_nodes_are_told_how_many_would_do():
    with pytest.raises(CapacityError, match=r"cannot be cut.*; \d nodes of 50\.0 MiB would hold"):
        cluster.split(light.path_of("densenet121"), ["50MiB"])


def test_bad_requests_are_refused(tmp_path):
    path = light.path_of("squeezenet")
    with pytest.raises(InputError, match="0 budgets were given; give 1 to 10"):
        cluster.split(path, [])
    with pytest.raises(InputError, match="is not an amount of memory"):
        cluster.split(path, ["many"])
    with pytest.raises(InputError, match="allocate outside the plan"):
        cluster.split(small_models.nonzero(), ["1GiB"])
    import tightship

    prepared = tmp_path / "model.tship"
    tightship.prepare(path, prepared)
    with pytest.raises(InputError, match="is prepared; give the ONNX file"):
        cluster.split(prepared, ["1GiB"])
