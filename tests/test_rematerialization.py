"""Planners of recomputation by other people's rules agree with each other, and ours with them."""

import pytest
from benchmarks.rematerialization import layers
from benchmarks.rematerialization.answer import measured
from benchmarks.rematerialization.dtr import dtr
from benchmarks.rematerialization.layers import NETWORKS, chain, residual

from tightship.planner.recompute_bound import least_bytes
from tightship.planner.squeeze import Squeezing


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_a_step_in_order(name):
    work = NETWORKS[name]()
    peak, added = measured(work, range(work.count))
    assert added == 0
    plain = Squeezing(work.schedule(), work.costs).plain
    assert peak == work.peak_bytes() == plain.given_peak_bytes
    assert all(read < node for node, reads in enumerate(work.reads) for read in reads)
    assert work.count % 2 == 1  # a loss between layers and their gradients


def test_vgg_has_the_operations_that_are_published():
    work = layers.vgg16(1)
    forward = sum(work.costs[: work.count // 2])
    assert forward / 2e9 == pytest.approx(15.5, abs=0.1)  # 15.5 billion multiplications


@pytest.mark.parametrize("runs", [[0, 1], [1, 0, 2, 3, 4]])
def test_runs_that_read_what_is_not_there_are_refused(runs):
    with pytest.raises(ValueError, match=r"run|before"):
        measured(chain(2), runs)


@pytest.mark.parametrize("share", [0.6, 0.3])
def test_eviction_while_running_keeps_to_its_budget(share):
    work = residual(12)
    floor, most = least_bytes(work.schedule()), work.peak_bytes()
    budget = floor + int((most - floor) * share)
    answer = dtr(work, budget)
    peak, added = measured(work, answer.runs)
    assert peak <= budget
    assert added > 0


def test_a_budget_below_the_floor_has_no_answer():
    work = chain(6)
    assert dtr(work, 2 << 20).runs == ()


@pytest.mark.parametrize("share", [0.7, 0.5])
def test_the_exact_programs_agree_and_bound_ours(share):
    pytest.importorskip("scipy")
    pytest.importorskip("ortools")
    from benchmarks.rematerialization.checkmate import checkmate
    from benchmarks.rematerialization.moccasin import moccasin

    work = chain(5)
    floor, most = least_bytes(work.schedule()), work.peak_bytes()
    budget = floor + int((most - floor) * share)
    by_stages, by_intervals = checkmate(work, budget, 60), moccasin(work, budget, 60)
    assert by_stages.is_optimal
    assert by_intervals.is_optimal
    peak, added = measured(work, by_stages.runs)
    assert peak <= budget
    assert by_stages.least_added == pytest.approx(added, rel=1e-3)
    assert measured(work, by_intervals.runs)[1] == added
    ours = Squeezing(work.schedule(), work.costs).within(budget)
    assert ours.added_operations == added
