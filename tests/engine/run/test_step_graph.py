"""Steps that run at once: what waits for what, and that nothing of it shows in the results."""

import subprocess
from pathlib import Path
from random import Random

import numpy as np
import pytest

import tightship
from tests.at_once import at_once
from tests.engine.graphs import static_placement
from tests.native.sanitized import NATIVE, require_sanitizer
from tests.zoo.arena import LARGE, NOT_A_NUMBER, poison
from tests.zoo.net import Net
from tests.zoo.networks import DYNAMIC, STATIC, network
from tests.zoo.oracle import assert_same_bits
from tests.zoo.random_graph import random_case
from tightship import DeadlineError, InputError, StopFlag, StoppedError
from tightship._core import NativeStepGraph
from tightship.engine.run.step_graph import needed
from tightship.planner.parallel.added_edges import added_edges
from tightship.planner.parallel.dependencies import step_order
from tightship.planner.verify_parallel import verify_parallel


def branched(count=4, steps=6):
    """Branches of element-wise steps that no pass joins, and their sum."""
    net = Net(1)
    x = net.normal("x", 64, 256)
    ends = []
    for branch in range(count):
        y = x
        for step in range(steps):
            y = net("Sin" if (branch + step) % 2 else "Cos", y)
        ends.append(y)
    net.output(net("Sum", *ends))
    return net.case()


@pytest.mark.parametrize("name", [*STATIC, *DYNAMIC])
def test_a_network_gives_the_same_bits_on_any_number_of_workers(name):
    case, _ = network(name)
    with tightship.load(case.model) as model:
        wanted = model.run(case.feeds)
        for workers in (2, 3):
            assert_same_bits(model.run(case.feeds, workers=workers), wanted)


@pytest.mark.parametrize("byte", [NOT_A_NUMBER, LARGE])
def test_workers_depend_on_nothing_that_memory_held(byte):
    case = branched()
    with tightship.load(case.model) as model:
        wanted = model.run(case.feeds)
        for _ in range(20):
            poison(model, byte)
            assert_same_bits(model.run(case.feeds, workers=3), wanted)


@pytest.mark.parametrize("first", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_random_graphs_give_the_same_bits_on_several_workers(first):
    for seed in range(first, first + (40 if first == 0 else 1000)):
        case = random_case(Random(seed), 2 + seed % 15)
        with tightship.load(case.model) as model:
            wanted = model.run(case.feeds)
            assert_same_bits(model.run(case.feeds, workers=3), wanted)


@pytest.mark.parametrize("name", STATIC)
def test_what_waits_makes_the_plan_safe(name):
    placement = static_placement(name)
    verify_parallel(placement.schedule_plan, needed(placement))


@pytest.mark.parametrize("name", STATIC)
def test_what_a_plan_adds_to_the_order_is_kept_to(name):
    placement = static_placement(name)
    order = step_order(placement.schedule_plan.schedule, needed(placement))
    assert all(order.before(e.before, e.after) for e in added_edges(placement.schedule_plan))


def test_parts_of_one_slot_are_written_without_waiting():
    net = Net(2)
    x = net.normal("x", 1, 8, 12, 12)
    parts = [net("Conv", x, net.weight(16, 8, 3, 3), pads=[1, 1, 1, 1]) for _ in range(3)]
    net.output(net("Relu", net("Concat", *parts, axis=1)))
    case = net.case()
    with tightship.load(case.model) as model:
        wanted = model.run(case.feeds)
        assert_same_bits(model.run(case.feeds, workers=3), wanted)


def test_several_threads_with_workers_each():
    case = branched()
    with tightship.load(case.model) as model:
        wanted = model.run(case.feeds)
        found = at_once(lambda _: model.run(case.feeds, workers=2), range(4))
    assert len(found) == 4
    for results in found:
        assert_same_bits(results, wanted)


def test_a_run_on_workers_can_be_ended():
    case = branched()
    with tightship.load(case.model) as model:
        stop = StopFlag()
        stop.set()
        with pytest.raises(StoppedError):
            model.run(case.feeds, workers=2, stop=stop)
        with pytest.raises(DeadlineError):
            model.run(case.feeds, workers=2, timeout_s=0)
        assert_same_bits(model.run(case.feeds, workers=2), model.run(case.feeds))


def test_an_error_on_a_worker_reaches_the_caller():
    net = Net(3)
    x = net.normal("x", 4, 4)
    index = net.input("index", np.array([9], np.int64))
    net.output(net("Gather", x, index), net("Sin", x))
    case = net.case()
    with tightship.load(case.model) as model:
        with pytest.raises(InputError):
            model.run(case.feeds, workers=2)
        case.feeds["index"][:] = 1
        assert_same_bits(model.run(case.feeds, workers=2), model.run(case.feeds))


@pytest.mark.parametrize(
    ("workers", "threads", "message"), [(0, 1, "from 1 to 1024"), (2, 2, "one thread each")]
)
def test_workers_that_cannot_be_are_refused(workers, threads, message):
    case = branched(1, 2)
    with (
        tightship.load(case.model, threads=threads) as model,
        pytest.raises(InputError, match=message),
    ):
        model.run(case.feeds, workers=workers)


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 3], [0, 1, 2, 2]])
def test_an_order_that_lacks_a_step_is_refused(order):
    with pytest.raises(ValueError, match="every step once"):
        NativeStepGraph(5, 8, [(5, 6)], order)


@pytest.mark.slow
def test_a_sanitizer_sees_no_race_between_steps(tmp_path):
    require_sanitizer("thread")
    program = tmp_path / "stress"
    sources = [
        *(NATIVE / "omp").glob("*.cpp"),
        NATIVE / "src/parallel.cpp",
        NATIVE / "src/run/step_graph.cpp",
        Path(__file__).with_name("stress_steps.cpp"),
    ]
    command = [
        "g++",
        "-std=c++20",
        "-O1",
        "-g",
        "-fsanitize=thread",
        "-pthread",
        f"-I{NATIVE / 'omp'}",
        f"-I{NATIVE / 'include'}",
        *map(str, sources),
        "-o",
        program,
    ]
    subprocess.run(command, check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the sanitizer does not run on this system")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("edge", [(1, 1), (2, 1), (0, 4), (-1, 2)])
def test_edges_that_lead_nowhere_are_refused(edge):
    with pytest.raises(ValueError, match="from a step to a later one"):
        NativeStepGraph(0, 4, [edge])
