"""Steps of models with control flow: written out, kept as it is, and as nodes written by hand."""

import tracemalloc

import numpy as np
import onnx
import pytest

import tightship
from tests.processor import needs_avx512
from tests.training.nets import floats, labels, mlp, net
from tightship import Adam, GraphError, Sgd, train
from tightship.training import written_out

LOOP = """loop (float[8,6] x) => (float[8,6] y) {
    n = Constant <value = int64 {3}> ()
    last, all = Loop <body = iteration (int64 i, bool c, float[8,6] s)
                          => (bool d, float[8,6] next, float[8,6] e) {
        d = Identity (c)
        t = MatMul (s, w)
        u = Add (t, b)
        next = Tanh (u)
        e = Identity (next)
    }> (n, , x)
    y = ReduceMax <keepdims = 0> (all, axis)
}"""

SCAN = """scan (float[8,3,6] x) => (float[8,6] y) {
    y = Scan <num_scan_inputs = 1, scan_input_axes = [1],
              body = iteration (float[8,6] s, float[8,6] v) => (float[8,6] next) {
        t = MatMul (s, w)
        u = Add (t, v)
        next = Tanh (u)
    }> (start, x)
}"""

BY_HAND = """hand (float[8,3,6] x) => (float[8,6] y) {
    a, b, c = Split <axis = 1, num_outputs = 3> (x)
    a1 = Squeeze (a, axis)
    b1 = Squeeze (b, axis)
    c1 = Squeeze (c, axis)
    t1 = MatMul (start, w)   u1 = Add (t1, a1)   n1 = Tanh (u1)
    t2 = MatMul (n1, w)      u2 = Add (t2, b1)   n2 = Tanh (u2)
    t3 = MatMul (n2, w)      u3 = Add (t3, c1)   y = Tanh (u3)
}"""

CHOICE = """choice (float[8,6] x, bool k) => (float[8,6] y) {
    y = If <then_branch = one () => (float[8,6] a) { t = MatMul (x, w)  a = Tanh (t) },
            else_branch = other () => (float[8,6] a) { t = Add (x, b)  a = Sigmoid (t) }> (k)
}"""


def with_constants(case, **arrays):
    """A net whose model holds these tensors as well, which are not trained."""
    model = onnx.load_from_string(case.model)
    for name, array in arrays.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model.SerializeToString()


def steps(model, feeds, optimizer, count=5, **settings):
    with train(model, "cross_entropy", optimizer, **settings) as trainer:
        return [trainer.step(feeds) for _ in range(count)], trainer.weights()


def check_alike(one, other):
    np.testing.assert_allclose(one[0], other[0], rtol=1e-4)
    assert one[1].keys() == other[1].keys()
    for name, array in one[1].items():
        np.testing.assert_allclose(array, other[1][name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("optimizer", [Sgd(0.1, 0.9), Adam(0.01, clip_norm=0.5)])
@pytest.mark.parametrize("text", [LOOP, SCAN])
def test_unrolled_iterations_and_a_loop_have_the_same_steps(text, optimizer, monkeypatch):
    shape = (8, 6) if text is LOOP else (8, 3, 6)
    weights = {"w": (6, 6), "b": (6,)} if text is LOOP else {"w": (6, 6), "start": (8, 6)}
    case = net(text, "cross_entropy", {"x": floats(*shape), "labels": labels(6, 8)}, **weights)
    model = with_constants(case, axis=np.array([0])) if text is LOOP else case.model
    in_a_row = steps(model, case.feeds, optimizer)
    monkeypatch.setattr(written_out, "NODES_MAX", 0)
    check_alike(in_a_row, steps(model, case.feeds, optimizer))
    assert in_a_row[0][-1] < 0.999 * in_a_row[0][0]


def test_a_scan_has_the_steps_of_what_is_written_by_hand():
    feeds = {"x": floats(8, 3, 6), "labels": labels(6, 8)}
    scan = net(SCAN, "", feeds, w=(6, 6), start=(8, 6))
    hand = with_constants(net(BY_HAND, "", feeds, w=(6, 6), start=(8, 6)), axis=np.array([1]))
    check_alike(steps(scan.model, feeds, Sgd(0.1)), steps(hand, feeds, Sgd(0.1)))


def test_branches_are_trained_as_they_are_taken():
    case = net(CHOICE, "", {"x": floats(8, 6), "labels": labels(6, 8)}, w=(6, 6), b=(6,))
    with train(case.model, "cross_entropy", Sgd(0.1)) as trainer:
        before = trainer.weights()
        trainer.step({**case.feeds, "k": np.array(True)})
        between = trainer.weights()
        trainer.step({**case.feeds, "k": np.array(False)})
        after = trainer.weights()
    assert (before["w"] != between["w"]).all()
    np.testing.assert_array_equal(before["b"], between["b"])
    np.testing.assert_array_equal(between["w"], after["w"])
    assert (between["b"] != after["b"]).all()


def test_a_branch_that_is_known_is_written_out():
    text = CHOICE.replace(", bool k)", ")").replace(
        "y = If", "k = Constant <value = bool {1}> () y = If"
    )
    case = net(text, "", {"x": floats(8, 6), "labels": labels(6, 8)}, w=(6, 6), b=(6,))
    plain = """plain (float[8,6] x) => (float[8,6] y) { t = MatMul (x, w)  y = Tanh (t) }"""
    other = net(plain, "", case.feeds, w=(6, 6))
    check_alike(steps(case.model, case.feeds, Sgd(0.1)), steps(other.model, case.feeds, Sgd(0.1)))


def in_body(model, name):
    """The model with an initializer moved into the body of its first node that has one."""
    model = onnx.load_from_string(model)
    body = next(a.g for node in model.graph.node for a in node.attribute if a.HasField("g"))
    place = next(i for i, each in enumerate(model.graph.initializer) if each.name == name)
    body.initializer.append(model.graph.initializer[place])
    del model.graph.initializer[place]
    return model.SerializeToString()


@pytest.mark.parametrize("nodes", [written_out.NODES_MAX, 0])
def test_weights_within_a_body_are_trained_and_saved(nodes, monkeypatch, tmp_path):
    monkeypatch.setattr(written_out, "NODES_MAX", nodes)
    case = net(SCAN, "", {"x": floats(8, 3, 6), "labels": labels(6, 8)}, w=(6, 6), start=(8, 6))
    model = in_body(case.model, "w")
    with train(model, "cross_entropy", Sgd(0.1)) as trainer:
        trainer.step(case.feeds)
        trainer.save(tmp_path / "trained.onnx")
        weights, loss = trainer.weights(), trainer.step(case.feeds)
    assert set(weights) == {"w", "start"}
    with train(tmp_path / "trained.onnx", "cross_entropy", Sgd(0.1)) as again:
        np.testing.assert_array_equal(again.weights()["w"], weights["w"])
        assert again.step(case.feeds) == loss


def test_weights_of_one_name_in_two_branches_are_two(tmp_path):
    case = net(CHOICE.replace("Add (x, b)", "MatMul (x, w)"), "",
               {"x": floats(8, 6), "labels": labels(6, 8)}, w=(6, 6))  # fmt: skip
    model = onnx.load_from_string(case.model)
    (choice,), (weights,) = model.graph.node, model.graph.initializer
    for attribute in choice.attribute:
        attribute.g.initializer.append(weights)
    del model.graph.initializer[:]
    with train(model.SerializeToString(), "cross_entropy", Sgd(0.1)) as trainer:
        trainer.step({**case.feeds, "k": np.array(True)})
        one, other = trainer.weights().values()
        assert (one != other).all()
        with pytest.raises(tightship.InputError, match="not a tensor of the model's file"):
            trainer.save(tmp_path / "trained.onnx")


DROPPED = LOOP.replace("e = Identity (next)", "e = Dropout (next, half)")


def dropped():
    case = net(DROPPED, "", {"x": floats(8, 6), "labels": labels(6, 8)}, w=(6, 6), b=(6,))
    return with_constants(case, axis=np.array([0]), half=np.array(0.5, np.float32)), case.feeds


def test_each_iteration_drops_elements_of_its_own():
    model, feeds = dropped()
    losses, _ = steps(model, feeds, Sgd(0.0), count=3)
    assert len(set(losses)) == 3
    assert len(set(steps(model, feeds, Sgd(0.0), count=3, dropout=0.0)[0])) == 1


def test_a_loop_that_stays_one_cannot_drop(monkeypatch):
    model, _ = dropped()
    monkeypatch.setattr(written_out, "NODES_MAX", 0)
    with pytest.raises(GraphError, match=r"Dropout `\w+` is in a body of `Loop_last`.*`dropout=0`"):
        train(model, "cross_entropy", Sgd())


def test_what_a_weight_decides_is_decided_in_each_step():
    text = """sign (float[2,3] x) => (float y) {
        zero = Constant <value = float {0.0}> ()
        s = ReduceSum <keepdims = 0> (w)
        k = Greater (s, zero)
        z = If <then_branch = one () => (float[2,3] a) { a = Mul (x, w) },
                else_branch = other () => (float[2,3] a) { a = Neg (x) }> (k)
        y = ReduceSum <keepdims = 0> (z)
    }"""
    case = net(text, "y", {"x": np.ones((2, 3), np.float32)}, w=(3,))
    model = onnx.load_from_string(case.model)
    model.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.array([0.1, 0.1, 0.1], np.float32), "w")
    )
    with train(model.SerializeToString(), "y", Sgd(1.0)) as trainer:
        np.testing.assert_allclose([trainer.step(case.feeds) for _ in range(2)], [0.6, -6])


def test_a_loop_whose_count_is_an_input_is_refused_by_what_depends_on_it():
    text = LOOP.replace("(float[8,6] x)", "(float[8,6] x, int64 n)")
    case = net(text.replace("n = Constant <value = int64 {3}> ()", ""), "", {}, w=(6, 6), b=(6,))
    model = with_constants(case, axis=np.array([0]))
    with pytest.raises(GraphError, match=r"shape of `all`.*if its count is not a constant"):
        train(model, "cross_entropy", Sgd())


@pytest.mark.parametrize("text", [SCAN, CHOICE])
@pytest.mark.parametrize("without", [pytest.param((), marks=needs_avx512), ("native",)])
def test_what_bodies_allocate_is_reckoned(text, without, monkeypatch):
    """Native bodies allocate nothing. Products of two operands are NumPy's with AVX2.

    A NumPy kernel may copy an operand, and not all results of an iteration live at once.
    """
    monkeypatch.setattr(written_out, "NODES_MAX", 0)
    wide = text.replace("[8,3,6]", "[512,3,256]").replace("[8,6]", "[512,256]")
    other = {"start": (512, 256)} if text is SCAN else {"b": (256,)}
    x = floats(512, 3, 256) if text is SCAN else floats(512, 256)
    feeds = {"x": x, "labels": labels(256, 512)}
    if text is CHOICE:
        feeds["k"] = np.array(True)
    model = net(wide, "", feeds, w=(256, 256), **other).model
    with train(model, "cross_entropy", Sgd(0.1), without=without) as trainer:
        trainer.step(feeds)
        tracemalloc.start()
        trainer.step(feeds)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        bodies = trainer.memory.bodies_bytes
    if without:
        assert 0.5 < most / bodies < 1.5
    else:
        assert (bodies, most < 16 << 10) == (0, True)


def test_a_step_without_bodies_allocates_nothing_beside_its_arena():
    with train(mlp().model, "cross_entropy", Sgd(0.1)) as trainer:
        assert trainer.memory.bodies_bytes == 0
