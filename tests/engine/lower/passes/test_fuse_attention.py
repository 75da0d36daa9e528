"""Every spelling of attention becomes one operator, with the numbers of ONNX Runtime."""

import numpy as np
import pytest

from tests.engine.graphs import implementations, run
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near, expected
from tightship._core import HAS_ONEDNN
from tightship.frontend.onnx import read_bytes

B, H, S, D = 3, 4, 17, 13


class Writer:
    """Queries, keys and values of one attention, and parts of its spellings."""

    def __init__(self, batch=B, steps=S, opset=20):
        self.net = Net(5, opset)
        self.batch, self.steps = batch, steps
        self.q, self.k, self.v = (self.heads(name) for name in "qkv")

    def heads(self, name, count=H):
        net = self.net
        x = net.normal(name, self.batch, self.steps, count * D)
        apart = net("Reshape", x, net.ints(self.batch, self.steps, count, D))
        return net("Transpose", apart, perm=[0, 2, 1, 3])

    def scores(self):
        net = self.net
        products = net("MatMul", self.q, net("Transpose", self.k, perm=[0, 1, 3, 2]))
        return net("Div", products, net.scalar(D**0.5))

    def finish(self, scores, *, guard=False):
        net = self.net
        weights = net("Softmax", scores, axis=-1)
        if guard:
            weights = net("Where", net("IsNaN", weights), net.scalar(0), weights)
        mixed = net("Transpose", net("MatMul", weights, self.v), perm=[0, 2, 1, 3])
        net.output(net("Reshape", mixed, net.ints(0, 0, H * D)))
        return net.case()

    def padding(self):
        kept = np.arange(self.steps) < self.steps - 3
        return np.where(kept, 0, -1e4).astype(np.float32).reshape(1, 1, 1, -1)


def plain(w):
    return w.finish(w.scores())


def padded(w):
    return w.finish(w.net("Add", w.net.input("mask", w.padding()), w.scores()))


def each_its_mask(w):
    mask = w.net.normal("mask", w.batch, 1, w.steps, w.steps)
    return w.finish(w.net("Add", w.scores(), mask))


def causal(w):
    ahead = np.triu(np.ones((w.steps, w.steps), bool), 1)
    mask = np.where(ahead, np.finfo(np.float32).min, np.float32(0))
    return w.finish(w.net("Add", w.scores(), w.net.constant(mask)), guard=True)


def causal_by_choice(w):
    kept = w.net.constant(np.tri(w.steps, dtype=bool)[None, None])
    least = w.net.scalar(np.finfo(np.float32).min)
    return w.finish(w.net("Where", kept, w.scores(), least))


def causal_and_padded(w):
    kept = w.net.constant(np.tri(w.steps, dtype=bool)[None, None])
    scores = w.net("Where", kept, w.scores(), w.net.scalar(-1e9))
    return w.finish(w.net("Add", scores, w.net.input("mask", w.padding())))


def not_quite_causal(w):
    kept = np.tri(w.steps, dtype=bool)
    kept[-1, 0] = w.steps == 1
    least = w.net.scalar(-1e9)
    return w.finish(w.net("Where", w.net.constant(kept), w.scores(), least))


def chosen(w):
    kept = w.net.input("kept", w.net.random.random((w.batch, 1, w.steps, w.steps)) < 0.8)
    return w.finish(w.net("Where", kept, w.scores(), w.net.scalar(-np.inf)), guard=True)


def hidden(w):
    kept = w.net.input("hidden", w.net.random.random((w.batch, 1, 1, w.steps)) < 0.2)
    return w.finish(w.net("Where", kept, w.net.scalar(-1e9), w.scores()))


def no_key_seen(w):
    net = w.net
    mask = np.zeros((w.batch, 1, 1, w.steps), np.float32)
    mask[-1] = -np.inf
    return w.finish(net("Add", w.scores(), net.input("mask", mask)), guard=True)


def dynamo(w):
    net, scale = w.net, w.net.scalar(D**-0.25)
    flat = net("Reshape", w.k, net.ints(w.batch * H, w.steps, D))
    turned = net("Transpose", flat, perm=[0, 2, 1])
    turned = net("Reshape", turned, net.ints(w.batch, H, D, w.steps))
    scores = net("MatMul", net("Mul", w.q, scale), net("Mul", turned, scale))
    return w.finish(scores, guard=True)


def shared_heads(w):
    net = w.net
    for name in "kv":
        x = w.heads(f"{name}_shared", H // 2)
        wide = net("Expand", net("Unsqueeze", x, net.ints(2)), net.ints(1, 1, 2, 1, 1))
        joined = net("Reshape", wide, net.ints(w.batch, H, w.steps, D))
        w.q, w.k, w.v = (w.q, joined, w.v) if name == "k" else (w.q, w.k, joined)
    return w.finish(w.scores())


def capped(w):
    net, cap = w.net, w.net.scalar(0.7)
    scores = net("Mul", net("Tanh", net("Div", w.scores(), cap)), cap)
    return w.finish(net("Add", scores, net.input("mask", w.padding())))


def three_axes(w):
    net, shape = w.net, (w.batch * H, w.steps, D)
    q, k, v = (net("Reshape", x, net.ints(*shape)) for x in (w.q, w.k, w.v))
    products = net("MatMul", q, net("Transpose", k, perm=[0, 2, 1]))
    mixed = net("MatMul", net("Softmax", products, axis=-1), v)
    apart = net("Reshape", mixed, net.ints(w.batch, H, w.steps, D))
    net.output(net("Transpose", apart, perm=[0, 2, 1, 3]))
    return net.case()


def keys_kept(w):
    """New keys and values behind those of before, all of them outputs."""
    net = w.net
    past = [net.normal(f"past_{name}", w.batch, H, 9, D) for name in "kv"]
    w.k = net("Concat", past[0], w.k, axis=2)
    w.v = net("Concat", past[1], w.v, axis=2)
    net.output(w.k, w.v)
    return w.finish(w.scores())


SPELLINGS = [
    plain, padded, each_its_mask, causal, causal_by_choice, causal_and_padded, not_quite_causal,
    chosen, hidden, no_key_seen, dynamo, shared_heads, capped, three_axes, keys_kept,
]  # fmt: skip


@pytest.mark.parametrize("write", SPELLINGS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (1, 7), (3, 17)])
def test_every_pattern_is_one_kernel_with_the_same_numbers(write, batch, steps):
    case = write(Writer(batch, steps))
    graph, want = read_bytes(case.model), expected(case.model, case.feeds)
    assert ("Attention", "native", "attention") in implementations(graph)
    assert not {"Softmax", "MatMul"} & {step[0] for step in implementations(graph)}
    for without in ((), ("fuse_attention",), ("onednn",), ("native",)):
        assert_near(run(graph, without, case.feeds), want)


@pytest.mark.skipif(not HAS_ONEDNN, reason="without oneDNN a transpose is a copy")
@pytest.mark.parametrize("write", [plain, padded, causal, dynamo, shared_heads])
def test_nothing_is_moved_but_by_the_kernel(write):
    graph = read_bytes(write(Writer(1, 17)).model)
    steps = {operator for operator, _, _ in implementations(graph)}
    assert "Reorder" not in steps
    assert "Transpose" not in steps


def weights_seen(w):
    scores = w.scores()
    weights = w.net("Softmax", scores, axis=-1)
    w.net.output(weights, w.net("MatMul", weights, w.v))
    return w.net.case()


def another_axis(w):
    weights = w.net("Softmax", w.scores(), axis=2)
    w.net.output(w.net("MatMul", weights, w.v))
    return w.net.case()


def scaled_after_the_mask(w):
    scores = w.net("Add", w.scores(), w.net.normal("mask", 1, 1, w.steps, w.steps))
    return w.finish(w.net("Mul", scores, w.net.scalar(0.5)))


def scaled_after_the_cap(w):
    net = w.net
    scores = net("Mul", net("Tanh", w.scores()), net.scalar(0.7))
    return w.finish(net("Mul", scores, net.scalar(0.5)))


def capped_after_the_mask(w):
    net = w.net
    scores = net("Add", w.scores(), net.normal("mask", 1, 1, w.steps, w.steps))
    return w.finish(net("Mul", net("Tanh", scores), net.scalar(0.7)))


def values_weigh(w):
    weights = w.net("Softmax", w.scores(), axis=-1)
    w.net.output(w.net("MatMul", w.net("Transpose", w.v, perm=[0, 1, 3, 2]), weights))
    return w.net.case()


@pytest.mark.parametrize(
    "write",
    [
        weights_seen,
        another_axis,
        scaled_after_the_mask,
        scaled_after_the_cap,
        capped_after_the_mask,
        values_weigh,
    ],
)
def test_what_is_not_attention_stays(write):
    case = write(Writer())
    graph = read_bytes(case.model)
    assert "Attention" not in {operator for operator, _, _ in implementations(graph)}
    assert_near(run(graph, (), case.feeds), expected(case.model, case.feeds))
