"""Masks of exporters' graphs become bounds and lengths; the numbers stay those of the graph."""

import numpy as np
import pytest
from onnx import TensorProto
from onnx.reference import ReferenceEvaluator

from tests.engine.graphs import lowered, run
from tests.frontend.onnx.contrib.case import Case, normal
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near
from tightship.engine.lower.pipeline import run_passes
from tightship.engine.plan.placement import place
from tightship.frontend.onnx import read_bytes

BATCH, HEADS, STEPS, CAPACITY, DEPTH = 2, 3, 4, 12, 8
LOWEST = np.finfo(np.float32).min
INT64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


class Decoder:
    """Attention over caches, and parts of the masks that exporters write for it."""

    def __init__(self, steps=STEPS, past=5):
        self.net = Net(3, 20)
        self.steps = steps
        shape = (BATCH, HEADS)
        self.q = self.net.normal("q", *shape, steps, DEPTH)
        self.k, self.v = (self.net.normal(name, *shape, CAPACITY, DEPTH) for name in "kv")
        self.past = self.net.input("past_length", np.array([past], np.int64))

    def scores(self):
        net = self.net
        turned = net("Transpose", self.k, perm=[0, 1, 3, 2])
        return net("Mul", net("MatMul", self.q, turned), net.scalar(0.3))

    def finish(self, scores):
        net = self.net
        net.output(net("MatMul", net("Softmax", scores, axis=-1), self.v))
        return net.case()

    def total(self):
        return self.net("Add", self.past, self.net.ints(self.steps))

    def columns(self):
        """Numbers of keys, [1, 1, 1, CAPACITY]."""
        return self.net.constant(np.arange(CAPACITY).reshape(1, 1, 1, -1))

    def rows(self):
        """Positions of queries, [1, 1, STEPS, 1]."""
        net = self.net
        index = net.constant(np.arange(self.steps))
        return net("Unsqueeze", net("Add", index, self.past), net.ints(0, 1, 3))

    def causal(self):
        return self.net("LessOrEqual", self.columns(), self.rows())

    def valid(self):
        """A generated attention mask, [BATCH, CAPACITY] of int64."""
        net = self.net
        seen = net("Less", net.constant(np.arange(CAPACITY)), self.total())
        cast = net("Cast", seen, to=INT64)
        return net("Expand", net("Unsqueeze", cast, net.ints(0)), net.ints(BATCH, CAPACITY))


def only_length(d):
    kept = d.net("Less", d.columns(), d.total())
    return d.finish(d.net("Where", kept, d.scores(), d.net.scalar(-np.inf)))


def causal_by_choice(d):
    mask = d.net("Where", d.causal(), d.net.scalar(0), d.net.scalar(LOWEST))
    return d.finish(d.net("Add", d.scores(), mask))


def causal_and_valid(d):
    """Write a mask of transformers: rows and columns compared, and the attention mask gathered."""
    net = d.net
    flags = net("Unsqueeze", net("Cast", d.valid(), to=BOOL), net.ints(1, 2))
    both = net("And", d.causal(), flags)
    mask = net("Where", both, net.scalar(0), net.scalar(LOWEST))
    return d.finish(net("Add", d.scores(), mask))


def causal_and_inverted(d):
    """Write an older mask: 1 - mask, turned into the lowest number, and the least of two masks."""
    net = d.net
    numbers = net("Cast", net("Unsqueeze", d.valid(), net.ints(1, 2)), to=FLOAT)
    inverted = net("Sub", net.scalar(1), numbers)
    wide = net("Expand", inverted, net.ints(BATCH, 1, d.steps, CAPACITY))
    padding = net("Where", net("Cast", wide, to=BOOL), net.scalar(LOWEST), wide)
    ahead = net("Mul", net("Cast", net("Not", d.causal()), to=FLOAT), net.scalar(LOWEST))
    return d.finish(net("Add", d.scores(), net("Min", ahead, padding)))


def row_of_a_table(d):
    """Write a mask of GPT-2: rows of a lower triangle at positions, then a padding mask."""
    net = d.net
    table = net.constant(np.tri(CAPACITY, dtype=bool)[None, None])
    places = net("Add", net.constant(np.arange(d.steps)), d.past)
    kept = net("Gather", table, places, axis=2)
    scores = net("Where", kept, d.scores(), net.scalar(LOWEST))
    numbers = net("Cast", net("Unsqueeze", d.valid(), net.ints(1, 2)), to=FLOAT)
    padding = net("Mul", net("Sub", net.scalar(1), numbers), net.scalar(LOWEST))
    return d.finish(net("Add", scores, padding))


def gathered_by_pairs(d):
    """Write a vmapped mask: the attention mask is read with GatherND at (batch, key)."""
    net = d.net
    shape = (BATCH, 1, d.steps, CAPACITY, 1)
    batch, column = np.meshgrid(np.arange(BATCH), np.arange(CAPACITY), indexing="ij")
    parts = [np.broadcast_to(each[:, None, None, :, None], shape) for each in (batch, column)]
    pairs = net("Concat", *map(net.constant, parts), axis=-1)
    flags = net("GatherND", net("Cast", d.valid(), to=BOOL), pairs)
    both = net("And", flags, d.causal())
    return d.finish(net("Where", both, d.scores(), net.scalar(LOWEST)))


def window(d):
    net = d.net
    near = net("Greater", d.columns(), net("Sub", d.rows(), net.ints(3)))
    mask = net("Where", net("And", near, d.causal()), net.scalar(0), net.scalar(LOWEST))
    return d.finish(net("Add", d.scores(), mask))


def triangle_of_ones(d):
    """Write Trilu of a mask filled with the lowest number, times whether a key is ahead."""
    net = d.net
    filled = net.constant(np.full((d.steps, CAPACITY), LOWEST, np.float32))
    upper = net("Trilu", filled, net.constant(np.int64(1)), upper=1)
    beyond = net("Greater", net.constant(np.arange(CAPACITY)),
                 net("Unsqueeze", net("Add", net.constant(np.arange(d.steps)), d.past),
                     net.ints(1)))  # fmt: skip
    scaled = net("Mul", upper, net("Cast", beyond, to=FLOAT))
    return d.finish(net("Add", d.scores(), net("Unsqueeze", scaled, net.ints(0, 1))))


RECOGNISED = [
    only_length,
    causal_by_choice,
    causal_and_valid,
    causal_and_inverted,
    row_of_a_table,
    gathered_by_pairs,
    window,
]


def attention_in(case):
    (found,) = [n for n in run_passes(read_bytes(case.model)).nodes if n.operator == "Attention"]
    return found


def assert_right(case):
    evaluator = ReferenceEvaluator(case.model)
    (name,) = evaluator.output_names
    with np.errstate(over="ignore"):
        want = {name: evaluator.run(None, case.feeds)[0]}
    assert_near(run(read_bytes(case.model), (), case.feeds), want)


@pytest.mark.parametrize("steps", [1, STEPS])
@pytest.mark.parametrize("past", [0, 5, 8])
@pytest.mark.parametrize("graph", RECOGNISED)
def test_masks_become_lengths_with_the_same_numbers(graph, past, steps):
    case = graph(Decoder(steps, past))
    node = attention_in(case)
    assert node.attributes["mask"] == "none"
    assert len(node.inputs) == 5
    assert_right(case)


def test_a_window_keeps_its_width():
    assert attention_in(window(Decoder())).attributes["behind"] == 2


@pytest.mark.parametrize("past", [0, 3])
def test_a_mask_that_says_more_stays_a_mask(past):
    """A triangle multiplied by another condition is not split into its two conditions."""
    case = triangle_of_ones(Decoder(past=past))
    assert attention_in(case).attributes["mask"] == "added"
    assert_right(case)


def test_a_mask_of_the_caller_stays_beside_the_length():
    d = Decoder()
    random = np.random.default_rng(0)
    own = np.where(random.random((BATCH, 1, 1, CAPACITY)) < 0.8, 0, LOWEST).astype(np.float32)
    own[..., 0] = 0
    scores = d.net("Add", d.scores(), d.net.input("mask", own))
    kept = d.net("Less", d.columns(), d.total())
    case = d.finish(d.net("Where", kept, scores, d.net.scalar(-np.inf)))
    node = attention_in(case)
    assert (node.attributes["mask"], len(node.inputs)) == ("added", 5)
    assert_right(case)


def test_lengths_may_differ_by_row_of_the_batch():
    d = Decoder()
    net = d.net
    lengths = net.input("lengths", np.array([[7], [12]], np.int32))
    total = net("Unsqueeze", net("Cast", lengths, to=INT64), net.ints(2, 3))
    total = net("Reshape", total, net.ints(BATCH, 1, 1, 1))
    kept = net("Less", d.columns(), total)
    case = d.finish(net("Where", kept, d.scores(), net.scalar(-np.inf)))
    assert attention_in(case).attributes["mask"] == "none"
    assert_right(case)


@pytest.mark.parametrize("window", [-1, 3])
@pytest.mark.parametrize("steps", [1, 3])
def test_grouped_queries_need_no_mask(window, steps):
    wide = 2 * DEPTH
    inputs = {
        "q": normal(BATCH, steps, 2 * wide),
        "k": normal(BATCH, steps, wide),
        "v": normal(BATCH, steps, wide),
        "past_key": normal(BATCH, 2, CAPACITY, DEPTH),
        "past_value": normal(BATCH, 2, CAPACITY, DEPTH),
        "lengths": np.array([8, 5], np.int32),
        "total": np.array([CAPACITY], np.int32),
    }
    given = {"num_heads": 4, "kv_num_heads": 2, "local_window_size": window}
    case = Case("GroupQueryAttention", inputs, given, ("y", "present_key", "present_value"))
    node = attention_in(case)
    assert node.attributes["mask"] == "none"
    assert node.attributes["behind"] == (window - 1 if window > 0 else -1)


@pytest.mark.parametrize("steps", [1, STEPS, 40])
@pytest.mark.parametrize("graph", [causal_and_valid, window])
def test_arenas_of_two_capacities_are_equal(graph, steps, monkeypatch):
    sizes = set()
    for capacity in (300, 3000):
        monkeypatch.setitem(globals(), "CAPACITY", capacity)
        case = graph(Decoder(steps, 9))
        sizes.add(place(lowered(read_bytes(case.model))).arena_bytes)
    assert len(sizes) == 1
