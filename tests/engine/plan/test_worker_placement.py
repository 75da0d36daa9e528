"""Programs placed for several workers; the memory note's figures for networks that branch."""

from random import Random

import pytest

from tests.engine.graphs import graph_of, lowered, static_placement
from tests.models import filled
from tests.planner.parallel.interleavings import Replay
from tests.processor import HAS_AVX512
from tests.zoo.inception_bn import inception_bn
from tests.zoo.light import path_of
from tests.zoo.networks import STATIC
from tightship.cost.schedule import schedule_of
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.plan.worker_placement import place_for_workers
from tightship.engine.run.step_graph import needed
from tightship.frontend.onnx import open_file, read_bytes
from tightship.planner.parallel.dependencies import step_order
from tightship.planner.parallel.worker_plan import plan_for_workers

BRANCHES = """net (float[64, 64] x) => (float[64, 64] y) {
    a1 = MatMul (x, w)
    a2 = MatMul (a1, w)
    b1 = MatMul (x, w)
    b2 = MatMul (b1, w)
    y = Add (a2, b2)
}"""


@pytest.mark.parametrize("name", STATIC)
def test_no_interleaving_that_the_executor_allows_corrupts_a_network(name):
    placed = place_for_workers(static_placement(name).lowered, 3)
    waits = needed(placed)
    order = step_order(placed.schedule_plan.schedule, waits)
    assert all(order.before(*edge) for edge in placed.concurrency.edges)
    for seed in range(3):
        Replay(placed.schedule_plan, waits).run(Random(seed))


def test_steps_in_python_run_alone():
    program = lowered(graph_of(BRANCHES, w=filled(64, 64)), ("onednn", "native"))
    found = place_for_workers(program, 4)
    assert found.concurrency.plan.longest_chain == len(program.steps)
    assert found.concurrency.added_bytes == 0
    assert found.lowered.workers == 4


def test_branches_have_a_price_that_a_bound_and_a_limit_refuse():
    program = lowered(graph_of(BRANCHES, w=filled(64, 64)), ())
    free = place_for_workers(program, 2)
    serial = place_for_workers(program, 2, added_bytes=0)
    assert free.arena_bytes > serial.arena_bytes
    assert free.concurrency.edges == ()
    assert place_for_workers(program, 2, arena_bytes_max=0).arena_bytes == serial.arena_bytes
    settings = Settings(workers=2, limit_bytes=1)
    graph = graph_of(BRANCHES, w=filled(64, 64))
    assert prepare(graph, "net", settings).placement.arena_bytes == serial.arena_bytes


WITH_SCRATCH = ("winograd", "split_products")
"""Passes whose kernels have scratch of their own, on processors that have them."""
INCEPTIONS = {
    "Inception-BN, 32": (lambda: read_bytes(inception_bn(32).model), 122.50, 94, 49),
    "Inception v1": (lambda: open_file(path_of("inception_v1")).graph(None), 4.43, 82, 40),
    "Inception v2": (lambda: open_file(path_of("inception_v2")).graph(None), 3.83, 92, 49),
}
"""Networks, MiB of their arenas, and longest chains of one worker and of several."""


@pytest.mark.skipif(not HAS_AVX512, reason="other kernels have scratch and layouts of their own")
@pytest.mark.parametrize("name", INCEPTIONS)
def test_an_inception_takes_no_more_at_once_and_half_the_steps_wait(name):
    read, mebibytes, serial, parallel = INCEPTIONS[name]
    placed = prepare(read(), name, Settings(workers=2, without=WITH_SCRATCH)).placement
    found = placed.concurrency
    assert round(placed.arena_bytes / 2**20, 2) == mebibytes
    assert (found.added_bytes, found.edges) == (0, ())
    assert [each.longest_chain for each in found.choices] == [serial, parallel]
    assert found.speedup_of(found.plan) > 1.3


@pytest.mark.parametrize("name", ["inception_v1", "inception_v2", "resnet50"])
def test_a_network_of_tensors_takes_no_more_than_its_bound(name):
    schedule = schedule_of(open_file(path_of(name)).graph(None)).schedule
    weights = [1] * len(schedule.steps)
    free, bound = (plan_for_workers(schedule, 2, weights, added_bytes=n) for n in (None, 1 << 18))
    assert bound.concurrency.added_bytes <= 1 << 18
    assert free.concurrency.plan.operations <= bound.concurrency.plan.operations
