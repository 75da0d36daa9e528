"""Updates and gradients by native kernels, against NumPy's, which say what they mean."""

from dataclasses import replace

import numpy as np
import pytest

from tests.engine.graphs import implementations, run
from tests.graph.backward.differences import graph_of, numbers
from tightship._core import NativeKernel
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.errors import InputError
from tightship.graph.backward import (
    Adam,
    Sgd,
    backward,
    with_batch_statistics,
    with_dropout,
    with_running_statistics,
    with_updates,
)
from tightship.model import Model

HEADER = '<ir_version: 10, opset_import: ["": 24]>'


def run_in(threads, graph, without, feeds):
    with Model(
        prepare(graph, "net", Settings(threads=threads, without=without)), Bounds()
    ) as model:
        return model.run(feeds)


def assert_native(graph, feeds, operator, threads=1):
    """A native kernel runs the operator, with and without oneDNN, and as NumPy does."""
    wanted = run(graph, ("onednn", "native"), feeds)
    for without in ((), ("onednn",)):
        steps = implementations(graph, without)
        assert {kernel for name, kernel, _ in steps if name == operator} == {"native"}
        found = run_in(threads, graph, without, feeds)
        for name, value in wanted.items():
            margin = 1e-5 * max(1.0, float(np.abs(value).max()))
            np.testing.assert_allclose(found[name], value, 1e-5, margin, err_msg=name)


def normalized(shape, *, training):
    channels = shape.split(",")[1]
    outputs = "y, mean, variance" if training else "y"
    return graph_of(
        f"""net (float[{shape}] x, float[{channels}] s, float[{channels}] b,
                 float[{channels}] m, float[{channels}] v) => (y) {{
            {outputs} = BatchNormalization <training_mode = {training}, epsilon = 0.01>
                (x, s, b, m, v)
        }}""",
        HEADER,
    )


@pytest.mark.parametrize("shape", ["4,16", "2,20,5,3", "3,70,7", "130,33"])
@pytest.mark.parametrize("training", [0, 1])
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_of_batch_normalizations_are_what_numpy_has(shape, training, threads):
    graph = backward(normalized(shape, training=training), ["y"], ["x", "s", "b"])
    feeds = numbers(graph)
    feeds["v"] = np.abs(feeds["v"]) + 0.1
    assert_native(graph, feeds, "BatchNormalizationGrad", threads)


def test_batches_of_nothing_are_left_to_numpy():
    graph = backward(normalized("0,16,4", training=1), ["y"], ["x", "s", "b"])
    steps = implementations(graph, ())
    assert all(kernel != "native" for name, kernel, _ in steps if name.startswith("BatchNorm"))
    found = run(graph, (), numbers(graph))
    assert (found["d(b)"] == 0).all()


@pytest.mark.parametrize("shape", ["2,20,5,3", "3,70,7", "130,33"])
def test_statistics_of_a_batch_are_what_numpy_has(shape):
    graph = with_batch_statistics(normalized(shape, training=1))
    feeds = numbers(graph)
    feeds["x"] = feeds["x"] + 30  # far from nought, where squares lose digits
    assert_native(graph, feeds, "BatchNormalizationTraining", 2)


@pytest.mark.parametrize(("shift", "spread"), [(0.0, 1.0), (30.0, 1.0), (0.0, 1e-3)])
def test_batch_normalizations_are_right_to_a_millionth(shift, spread):
    graph = backward(normalized("8,40,9,9", training=1), ["y"], ["x", "s", "b"])
    random = np.random.default_rng(0)
    feeds = numbers(graph)
    for name in ("x", "d(y)"):
        feeds[name] = random.standard_normal((8, 40, 9, 9)).astype(np.float32)
    feeds["x"] = feeds["x"] * np.float32(spread) + np.float32(shift)
    x, dy = feeds["x"].astype(np.float64), feeds["d(y)"].astype(np.float64)
    scale, bias = (feeds[n].astype(np.float64)[:, None, None] for n in ("s", "b"))
    over = {"axis": (0, 2, 3), "keepdims": True}
    inverse = 1 / np.sqrt(x.var(**over) + 0.01)
    normal = (x - x.mean(**over)) * inverse
    dx = scale * inverse * (dy - dy.mean(**over) - normal * (dy * normal).mean(**over))
    wanted = {
        "y": normal * scale + bias,
        "d(x)": dx,
        "d(s)": (dy * normal).sum((0, 2, 3)),
        "d(b)": dy.sum((0, 2, 3)),
    }
    found = run_in(2, graph, (), feeds)
    for name, value in wanted.items():
        assert np.abs(found[name] - value).max() <= 1e-6 * np.abs(value).max(), name


def test_batches_are_normalized_where_channels_lie_last():
    graph = graph_of(
        """net (float[2,16,9,9] x, float[48,16,3,3] w, float[48] s, float[48] b, float[48] m,
                float[48] v) => (y) {
            c = Conv <pads = [1, 1, 1, 1]> (x, w)
            n, mean, variance = BatchNormalization <training_mode = 1> (c, s, b, m, v)
            r = Relu (n)
            p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (r)
            y = Conv (p, w2)
        }""",
        HEADER,
        w2=np.random.default_rng(4).standard_normal((8, 48, 1, 1)).astype(np.float32),
    )
    graph = backward(graph, ["y"], ["w", "s", "b"])
    feeds = numbers(graph)
    wanted = run(graph, ("onednn", "native"), feeds)
    found = run_in(2, graph, (), feeds)
    for name, value in wanted.items():
        margin = 1e-4 * max(1.0, float(np.abs(value).max()))
        np.testing.assert_allclose(found[name], value, 1e-4, margin, err_msg=name)


POOLS = [
    ("1,3,8,7", "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]"),
    ("2,5,9", "kernel_shape = [2], strides = [3]"),
    ("2,70,6,6", "kernel_shape = [2, 3], dilations = [2, 1], pads = [0, 1, 1, 0]"),
]


@pytest.mark.parametrize(("shape", "how"), POOLS)
def test_the_first_of_equal_elements_has_the_gradient_of_a_maximum(shape, how):
    graph = graph_of(f"net (float[{shape}] x) => (y) {{ y = MaxPool <{how}> (x) }}", HEADER)
    graph = backward(graph, ["y"], ["x"])
    feeds = numbers(graph)
    feeds["x"] = np.round(feeds["x"] * 2)
    assert_native(graph, feeds, "MaxPoolGrad", 2)


@pytest.mark.parametrize("space", ["", ",5"])
@pytest.mark.parametrize("how", ["", '<reduction = "sum">', "<ignore_index = 2>"])
@pytest.mark.parametrize("weights", ["", ", w"])
def test_gradients_of_cross_entropies_are_what_numpy_has(space, how, weights):
    graph = graph_of(
        f"""net (float[6,7{space}] x, int64[6{space}] t, float[7] w) => (float y) {{
            y = SoftmaxCrossEntropyLoss {how} (x, t{weights})
        }}""",
        HEADER,
    )
    graph = backward(graph, ["y"], ["x"])
    feeds = numbers(graph)
    shape = graph.value("t").static_shape
    feeds["t"] = np.random.default_rng(1).integers(0, 7, shape)
    feeds["w"] = np.abs(feeds["w"]) + 0.1
    assert_native(graph, feeds, "SoftmaxCrossEntropyLossGrad", 2)


@pytest.mark.parametrize("without", [(), ("onednn",), ("onednn", "native")])
@pytest.mark.parametrize("ignored", [-100, 2, 10**6])
def test_labels_that_are_all_ignored_have_no_gradient(without, ignored):
    graph = graph_of(
        f"""net (float[4,3] x, int64[4] t) => (float y) {{
            y = SoftmaxCrossEntropyLoss <ignore_index = {ignored}> (x, t)
        }}""",
        HEADER,
    )
    graph = backward(graph, ["y"], ["x"])
    found = run(graph, without, numbers(graph) | {"t": np.full(4, ignored)})
    assert np.isnan(found["y"])
    assert (found["d(x)"] == 0).all()


def test_a_label_that_is_no_class_is_named():
    graph = graph_of(
        "net (float[2,3] x, int64[2] t) => (float y) { y = SoftmaxCrossEntropyLoss (x, t) }",
        HEADER,
    )
    graph = backward(graph, ["y"], ["x"])
    feeds = numbers(graph) | {"t": np.array([0, 3])}
    with pytest.raises(InputError):
        run(graph, (), feeds)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_what_was_picked_twice_has_the_sum_of_its_gradients(axis, dtype):
    graph = graph_of(
        f"net (float[4,5,6] x, {dtype}[2,3] i) => (y) {{ y = Gather <axis = {axis}> (x, i) }}",
        HEADER,
    )
    graph = backward(graph, ["y"], ["x"])
    feeds = numbers(graph) | {"i": np.array([[0, -1, 2], [3, 0, 0]], dtype)}
    assert_native(graph, feeds, "GatherGrad", 2)


@pytest.mark.parametrize("optimizer", [
    Sgd(0.5), Sgd(0.5, 0.8), Adam(0.1), Sgd(0.5, weight_decay=0.3), Adam(0.1, weight_decay=0.3),
    Sgd(0.5, 0.8, weight_decay=0.3, nesterov=True), Sgd(0.5, clip_norm=0.5),
    Sgd(0.5, 0.8, clip_norm=1e3), Adam(0.1, clip_norm=0.25),
])  # fmt: skip
@pytest.mark.parametrize("rate", ["", "rate"])
def test_updates_are_what_numpy_has(optimizer, rate):
    graph = graph_of(
        "net (float[2,3] x) => (y) { y = MatMul (x, w) }", HEADER, w=np.ones((3, 70), np.float32)
    )
    graph = backward(graph, ["y"], ["w"])
    graph = with_updates(graph, ["w"], graph.outputs[1:], optimizer, rate=rate)
    feeds = numbers(graph) | ({"rate": np.array(0.25, np.float32)} if rate else {})
    if isinstance(optimizer, Adam):
        feeds |= {"step": np.array(3), "w.square": np.abs(feeds["w.square"])}
    (operator,) = [node.operator for node in graph.nodes if node.operator.endswith("Update")]
    assert_native(graph, feeds, operator, 2)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("length", [1, 15, 16, 16384, 50_001])
def test_norms_of_gradients_are_what_numpy_has_whatever_the_threads(length, threads):
    header = HEADER.replace("24", "13")
    graph = graph_of(f"net (float[{length}] x, float[{length}] v) => (float y) {{ z = Mul (x, w) "
                     "u = Mul (z, v) y = ReduceSum <keepdims = 0> (u) }", header,
                     w=np.ones(length, np.float32))  # fmt: skip
    graph = backward(graph, ["y"], ["w", "v"])
    graph = with_updates(graph, ["w", "v"], graph.outputs[1:], Sgd(clip_norm=0.5))
    feeds = numbers(graph)
    for operator in ("SquaresAdded", "ClipScale"):
        assert_native(graph, feeds, operator, threads)
    found = run_in(threads, graph, (), feeds)
    assert (found["gradient_norm"] == run_in(1, graph, (), feeds)["gradient_norm"]).all()
    product = np.float64(feeds["x"])
    wanted = np.linalg.norm([*(product * feeds["v"]), *(product * feeds["w"])])
    np.testing.assert_allclose(found["gradient_norm"], wanted, 1e-5)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 20_000])
@pytest.mark.parametrize("mask", ["", ", mask"])
def test_dropouts_drop_what_numpy_drops(count, threads, mask):
    graph = graph_of(
        f"""net (float[{count}] x) => (float y{", bool mask" if mask else ""})
            <float r = {{0.3}}> {{
            a = Neg (x)
            y{mask} = Dropout (a, r)
        }}""",
        HEADER,
    )
    graph, _ = with_dropout(graph)
    for state in ([0, 1], [2**63 - 1, 2**33 + 5]):
        feeds = numbers(graph) | {"dropout": np.array(state)}
        assert_native(graph, feeds, "DropoutTraining", threads)
    if count == 20_000:
        assert abs((run(graph, (), feeds)["y"] == 0).mean() - 0.3) < 0.02


def test_running_statistics_are_what_numpy_has():
    graph = graph_of("net (float[2,3] x) => (y) { y = ReduceMean <keepdims = 0> (x, a) }", HEADER,
                     a=np.array([0]))  # fmt: skip
    graph = with_running_statistics(graph, {"r": ("y", 0.9, 0.1)})
    assert_native(graph, numbers(graph), "RunningUpdate")


def test_a_gradient_of_nothing_adds_nothing():
    graph = graph_of("net (float[0] x) => (float y) { z = Mul (x, w) y = ReduceSum (z) }",
                     HEADER.replace("24", "11"), w=np.ones(0, np.float32))  # fmt: skip
    graph = backward(graph, ["y"], ["w"])
    graph = with_updates(graph, ["w"], graph.outputs[1:], Sgd(clip_norm=0.5))
    assert {kernel for name, kernel, _ in implementations(graph, ()) if name == "SquaresAdded"} == {
        "native"
    }
    assert run_in(1, graph, (), numbers(graph))["gradient_norm"] == 0
    assert NativeKernel.squares_added(0, has_total=False).scratch_bytes(1) > 0


def test_an_unknown_rule_has_no_kernel():
    assert NativeKernel.update("Guess", (0, 4, 4), [False] * 2, [0.0] * 5) is None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("start", [0, 3, 700])
@pytest.mark.parametrize(
    "optimizer",
    [
        Sgd(0.1, weight_decay=0.1),
        Sgd(0.1, 0.9, weight_decay=0.1, nesterov=True),
        Adam(0.1, weight_decay=0.1),
    ],
)
def test_rows_of_a_weight_are_updated_as_numpy_does_and_others_stay(optimizer, start, threads):
    graph = graph_of("net (float[900,40] x) => (float y) { z = Mul (x, w) y = ReduceSum (z) }",
                     HEADER.replace("24", "11"), w=np.ones((900, 40), np.float32))  # fmt: skip
    graph = backward(graph, ["y"], ["w"])
    graph = with_updates(graph, ["w"], graph.outputs[1:], optimizer)
    whole = graph.nodes[-1]
    gradient = replace(graph.value(whole.inputs[1]), name="rows", shape=(200, 40))
    update = replace(
        whole,
        inputs=(whole.inputs[0], "rows", *whole.inputs[2:]),
        attributes={**whole.attributes, "start": start},
    )
    graph = replace(
        graph,
        nodes=(update,),
        inputs=(*(name for name in graph.inputs if name != "x"), "rows"),
        outputs=whole.outputs,
        values={**graph.values, "rows": gradient},
    )
    feeds = {name: np.abs(array) for name, array in numbers(graph).items()}
    feeds |= {"step": np.array(3)} if "step" in feeds else {}
    assert_native(graph, feeds, whole.operator, threads)
    for name, array in run_in(threads, graph, (), feeds).items():
        before = feeds[name.removesuffix(".next")]
        changed = (array != before).any(axis=1)
        assert changed.tolist() == [start <= row < start + 200 for row in range(900)], name


@pytest.mark.parametrize("start", [0, 2, 7])
def test_rows_of_what_is_picked_get_their_gradients_alone(start):
    graph = graph_of("net (int64[2,3] i) => (y) { y = Gather (w, i) }", HEADER,
                     w=np.ones((9, 5), np.float32))  # fmt: skip
    graph = backward(graph, ["y"], ["w"])
    whole = graph.nodes[-1]
    feeds = numbers(graph) | {"i": np.array([[0, 8, 3], [-1, 3, -7]])}
    wanted = run(graph, ("onednn", "native"), feeds)["d(w)"]
    rows = {**whole.attributes, "shape": (2, 5), "start": start, "length": 9}
    values = {**graph.values, "d(w)": replace(graph.value("d(w)"), shape=(2, 5))}
    part = replace(graph, nodes=(*graph.nodes[:-1], replace(whole, attributes=rows)), values=values)
    assert_native(part, feeds, "GatherGrad")
    np.testing.assert_array_equal(run_in(2, part, (), feeds)["d(w)"], wanted[start : start + 2])


def test_a_part_outside_the_whole_has_no_kernel():
    with pytest.raises(ValueError, match="part lies outside"):
        NativeKernel.update("SgdUpdate", (3, 2, 4), [False] * 2, [0.0] * 5)
    with pytest.raises(ValueError, match="part lies outside"):
        NativeKernel.gather_gradient((1, 4, 2), (3, 5), 1, is_wide=True, name="g")
