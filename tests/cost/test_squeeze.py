"""Squeezed training steps are run in a poisoned arena, and give what the plain ones do.

Bit for bit where both run node by node; other readers let the engine join other nodes.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.engine.graphs import REWRITES, prepared
from tests.processor import HAS_AVX512
from tests.zoo.arena import LARGE, NOT_A_NUMBER, poison
from tests.zoo.attention import Heads
from tests.zoo.bert import bert
from tests.zoo.gpt2 import Size, gpt2
from tests.zoo.net import Net
from tightship.cost.operations import operations_of
from tightship.cost.schedule import schedule_of
from tightship.cost.squeeze import priced, squeeze_report, squeezed
from tightship.cost.training import updating_graph
from tightship.engine.cache.bounds import Bounds
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes
from tightship.graph.backward import Adam, Sgd
from tightship.model import Model
from tightship.planner.recompute import NEVER
from tightship.planner.squeeze import squeeze

BY_ROWS = (*REWRITES, "native")
"""Parts left out: native kernels too, because only NumPy's update rows of a weight."""

CASES = {
    "bert": lambda: bert(2, 24, Size(2, Heads(2, 16), 50, 32)),
    "gpt2": lambda: gpt2(2, 24, Size(2, Heads(2, 16), 50, 32)),
    "gpt2 of many words": lambda: gpt2(2, 24, Size(2, Heads(2, 16), 400, 32)),
}


def training(name, optimizer):
    """A training step of a small network, and what it is fed."""
    return fed(CASES[name](), optimizer)


def fed(case, optimizer):
    """A training step of a model, and what it is fed."""
    model = read_bytes(case.model)
    graph = updating_graph(model, optimizer)
    random = np.random.default_rng(5)
    feeds = dict(case.feeds)
    for given in graph.inputs:
        if given in model.constants:
            feeds[given] = model.constants[given].array()
        elif given not in feeds:
            value = graph.value(given)
            feeds[given] = random.uniform(0.5, 1, value.static_shape).astype(value.dtype.numpy)
    return graph, {**feeds, **({"step": np.int64(2)} if "step" in graph.inputs else {})}


def results(graph, feeds, byte, without=REWRITES):
    with Model(prepared(graph, without), Bounds()) as model:
        model.run(feeds)
        poison(model, byte)
        return model.run(feeds)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("budget", "optimizer"), [("60%", Sgd()), ("50%", Adam())])
def test_a_squeezed_training_step_gives_the_same_bits(name, budget, optimizer):
    graph, feeds = training(name, optimizer)
    found = squeezed(graph, budget)
    assert found.squeezed.clones > 0
    assert len(found.graph.nodes) == len(graph.nodes) + found.squeezed.clones + found.tiles
    assert found.squeezed.plan.plan.peak_bytes <= found.budget_bytes
    wanted = results(graph, feeds, NOT_A_NUMBER, BY_ROWS)
    got = results(found.graph, feeds, LARGE, BY_ROWS)
    assert got.keys() == wanted.keys()
    for key, value in wanted.items():
        if found.tiles and not HAS_AVX512:  # NumPy's BLAS sums tiles of rows in another order
            np.testing.assert_allclose(got[key], value, 1e-3, 1e-5)
        else:
            np.testing.assert_array_equal(got[key], value)
    fused = results(found.graph, feeds, LARGE, without=())
    for key, value in wanted.items():
        np.testing.assert_allclose(fused[key], value, 1e-3, 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_the_squeezed_graph_has_the_schedule_that_was_planned(name):
    graph, _ = training(name, Sgd())
    found = squeezed(graph)
    planned = found.squeezed.plan.schedule
    schedule = schedule_of(found.graph).schedule
    sizes = [[s.values[v].size_bytes for step in s.steps for v in step.writes]
             for s in (schedule, planned)]  # fmt: skip
    assert sizes[0] == sizes[1]
    assert [step.operator for step in schedule.steps] == [step.operator for step in planned.steps]


def test_large_values_are_cut_where_that_takes_fewer_operations():
    graph, _ = training("gpt2 of many words", Sgd())
    found = squeezed(graph, "50%")
    schedule, operations = priced(graph)
    whole = squeeze(schedule, operations, budget_bytes=found.budget_bytes)
    assert found.tiles > 0
    assert found.squeezed.plan.plan.peak_bytes <= found.budget_bytes
    assert found.squeezed.added_operations < whole.added_operations
    assert found.squeezed.operations == whole.operations


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_graph_in_tiles_is_never_worse_than_whole(name):
    graph, _ = training(name, Sgd())
    schedule, operations = priced(graph)
    least = squeezed(graph).squeezed.plan.plan.peak_bytes
    assert least <= squeeze(schedule, operations).plan.plan.peak_bytes
    most = sum(operations) // 50
    found, whole = (
        squeezed(graph, operations_max=most),
        squeeze(schedule, operations, operations_max=most),
    )
    assert found.squeezed.added_operations <= most
    assert found.squeezed.plan.plan.peak_bytes <= whole.plan.plan.peak_bytes


def test_operations_are_those_of_the_formulas():
    net = Net()
    x = net.normal("x", 2, 3, 8, 8)
    y = net("Conv", x, net.weight(5, 3, 3, 3), pads=[1, 1, 1, 1])
    flat = net("Flatten", net("Relu", y))
    net.output(net("Gemm", flat, net.weight(320, 7)), net("RandomNormal", shape=[2]))
    graph = read_bytes(net.case().model)
    found = {node.operator: operations_of(graph, node) for node in graph.nodes}
    assert found == {
        "Conv": 2 * (2 * 5 * 64) * (3 * 9),
        "Relu": 2 * 5 * 64,
        "Flatten": 0,
        "Gemm": 2 * 2 * 320 * 7,
        "RandomNormal": NEVER,
    }


@pytest.mark.parametrize("budget", ["0%", "-5%", "x%", "many"])
def test_what_is_no_budget_is_refused(budget):
    graph, _ = training("bert", Sgd())
    with pytest.raises(InputError, match=budget):
        squeezed(graph, budget)


@pytest.mark.parametrize(
    ("added", "least", "words"),
    [
        (0, 0, []),
        (1, 1, ["less than 0.01% more operations"]),
        (50, 49, ["0.01% more operations"]),
        (500, 300, ["0.05% more operations", "at least 0.03% more operations"]),
    ],
)
def test_no_share_is_printed_as_nothing(added, least, words):
    found = squeezed(training("bert", Sgd())[0], "60%")
    made = replace(found.squeezed, operations=1_000_000, added_operations=added)
    if not added:
        made = replace(made, origin=tuple(range(len(made.origin))))
    text = squeeze_report(replace(found, squeezed=made), least)
    assert "0.00%" not in text
    assert text.count("more operations") == len(words)
    assert all(each in text for each in words)
    assert max(map(len, text.splitlines())) <= 100
