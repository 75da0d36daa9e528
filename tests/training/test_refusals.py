import math
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, load_from_string, numpy_helper

import tightship
from tests.models import parse
from tests.training.nets import cnn, floats, labels, mlp, net
from tests.zoo.quantized import quantized
from tests.zoo.resnet import resnet
from tightship import Adam, GraphError, InputError, Sgd, train
from tightship.training.save import saving


def refused(message, model, loss="cross_entropy", **settings):
    with pytest.raises(InputError, match=message):
        train(model, loss, Sgd(), **settings)


def test_a_loss_that_there_is_not_is_named_beside_those_there_are():
    refused(r"Unknown loss `hinge`; choose `cross_entropy`, `squared_error`, .* model's are y",
            mlp().model, "hinge")  # fmt: skip


def test_an_output_that_is_no_loss_is_said_to_be_none():
    refused(r"`y` is not a loss: it must be one float32, and has shape \(8, 4\)", mlp().model, "y")


def test_an_output_that_there_is_not_is_named():
    refused("Unknown output `z`; the outputs are y", mlp().model, output="z")


def test_a_model_of_two_outputs_requires_a_choice():
    two = net("two (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Mul (x, w) z = Relu (y) }",
              "cross_entropy", {}, w=(3,))  # fmt: skip
    refused("outputs y, z; choose with `output`", two.model)


def test_an_output_that_is_a_loss_is_one():
    own = net(
        """own (float[2,3] x) => (float y) { z = Mul (x, w) y = ReduceMean <keepdims = 0> (z) }""",
        "y", {"x": floats(2, 3)}, w=(3,),
    )  # fmt: skip
    with train(own.model, own.loss, Sgd(1.0)) as trainer:
        before = trainer.weights()["w"]
        loss = trainer.step(own.feeds)
        np.testing.assert_allclose(loss, (own.feeds["x"] * before).mean(), rtol=1e-6)
        moved = before - trainer.weights()["w"]
    np.testing.assert_allclose(moved, own.feeds["x"].sum(0) / 6, rtol=1e-5)


def test_scores_without_a_batch_have_no_cross_entropy():
    flat = net("flat (float[3] x) => (float[3] y) { y = MatMul (x, w) }", "", {}, w=(3, 3))
    with pytest.raises(GraphError, match=r"`y` cannot have a cross entropy: it has shape \(3,\)"):
        train(flat.model, "cross_entropy", Sgd())


def test_labels_of_another_type_are_refused():
    case = mlp()
    with train(case.model, case.loss, Sgd()) as trainer:
        wrong = case.feeds | {"labels": case.feeds["labels"].astype(np.float32)}
        with pytest.raises(InputError, match="Input `labels` has dtype float32; int64 is needed"):
            trainer.step(wrong)
        with pytest.raises(InputError, match="Input `labels` is missing"):
            trainer.step({"x": case.feeds["x"]})


def bits(trainer):
    """Everything that stays from step to step."""
    return {name: array.tobytes() for name, array in trainer._block.tensors.items()}


def refused_step(trainer, feeds, message):
    """A step that is refused has changed nothing, and the next one is made."""
    before = bits(trainer)
    with pytest.raises(InputError, match=message):
        trainer.step(feeds)
    assert bits(trainer) == before
    assert trainer.steps == 0


def with_its_own_loss(case):
    """The model with its loss among its nodes, where kernels alone know what a label may be."""
    model = load_from_string(case.model)
    loss = helper.make_node("SoftmaxCrossEntropyLoss", ["y", "labels"], ["loss"])
    model.graph.node.append(loss)
    model.graph.input.append(helper.make_tensor_value_info("labels", 7, [4]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("loss", 1, []))
    return model.SerializeToString()


@pytest.mark.parametrize("without", [(), ("reorder",), ("onednn", "native")])
@pytest.mark.parametrize("clip_norm", [None, 1.0])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_label_that_is_no_class_changes_nothing(without, clip_norm, workers):
    case = cnn()
    model = with_its_own_loss(case)
    with train(model, "loss", Adam(clip_norm=clip_norm), without=without) as trainer:
        before = bits(trainer)
        with pytest.raises(InputError):
            trainer.step(case.feeds | {"labels": np.full(4, 5)}, workers=workers)
        assert bits(trainer) == before
        assert trainer.steps == 0
        trainer.step(case.feeds, workers=workers)
        assert all(array != before[name] for name, array in bits(trainer).items())


@pytest.mark.parametrize("without", [(), ("reorder",), ("onednn", "native")])
@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_gradients_that_are_no_finite_numbers_change_nothing_where_they_are_clipped(
    without, number
):
    case = cnn()
    wrong = case.feeds | {"x": np.full_like(case.feeds["x"], number)}
    with train(case.model, case.loss, Sgd(clip_norm=math.inf), without=without) as trainer:
        refused_step(trainer, wrong, "has gradients whose norm is not a number")
        trainer.step(case.feeds)
        assert trainer.gradient_norm > 0
    with train(case.model, case.loss, Sgd(), without=without) as trainer:
        assert math.isnan(trainer.step(wrong))
        assert trainer.gradient_norm is None


def test_a_limit_that_is_not_reached_changes_no_bit():
    case = cnn()
    with (
        train(case.model, case.loss, Adam()) as plain,
        train(case.model, case.loss, Adam(clip_norm=math.inf)) as clipped,
    ):
        for _ in range(3):
            assert plain.step(case.feeds) == clipped.step(case.feeds)
        assert bits(plain) == bits(clipped)
        held = clipped.memory.arena_bytes - plain.memory.arena_bytes
        assert 0 < held <= clipped.memory.weights_bytes


def test_shapes_that_are_open_are_asked_for():
    model = load_from_string(mlp().model)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    said = r"shape of 1 input\(s\) is not known: `x` \[batch, 10\].*shapes=\{.x.: \(1, 10\)\}"
    refused(said, model.SerializeToString())
    with train(model.SerializeToString(), "cross_entropy", Sgd(), shapes={"x": (3, 10)}) as trainer:
        trainer.step({"x": floats(3, 10), "labels": labels(4, 3)})


def test_a_prepared_file_is_distinguished_from_a_model(tmp_path):
    (tmp_path / "net.onnx").write_bytes(mlp().model)
    tightship.prepare(tmp_path / "net.onnx", tmp_path / "net.tship")
    refused(r"net\.tship` is a prepared model, .* Give the ONNX file", tmp_path / "net.tship")


def test_quantized_weights_are_not_trained():
    model = quantized(resnet(1, size=32, blocks=(1,), width=8), "qdq").model
    refused("is quantized, and integers have no gradient", model)


def test_floats_that_no_kernel_trains_are_named_with_those_that_are():
    text = """net (bfloat16[4,6] x) => (bfloat16[4,3] y) {
        w = Cast <to = 16> (v) a = MatMul (x, w) y = Relu (a)
    }"""
    model = parse(text, v=np.ones((6, 3), np.float32)).SerializeToString()
    with pytest.raises(GraphError, match=r"no kernel .* runs in float32, float64 and float16"):
        train(model, "squared_error", Sgd())


def test_weights_of_bfloat16_are_refused_by_name():
    text = """net (bfloat16[4,6] x) => (bfloat16[4,1] y) {
        w = Constant <value = bfloat16[6,1] {1, 1, 1, 1, 1, 1}> ()
        y = MatMul (x, w)
    }"""
    model = parse(text).SerializeToString()
    refused("`w` is bfloat16.* float32, and convert", model, "squared_error")
    refused("`w` is bfloat16.* float32, and convert", model, "squared_error", weights=["w"])


def test_a_model_without_weights_has_nothing_to_train():
    bare = net("bare (float[2,3] x) => (float[2,3] y) { y = Relu (x) }", "squared_error", {})
    refused("no weights to train", bare.model, "squared_error")


def test_weights_that_there_are_not_cannot_be_trained():
    refused("`w9` cannot be trained: .* The model has w1, b1, w2, b2", mlp().model, weights=["w9"])


def test_only_chosen_weights_change():
    case = mlp()
    with train(case.model, case.loss, Sgd(), weights=["w2"]) as trainer:
        before = trainer.weights()
        trainer.step(case.feeds)
        assert list(before) == ["w2"]
        assert (trainer.weights()["w2"] != before["w2"]).any()


@pytest.mark.parametrize("optimizer", [Sgd(0.1), Sgd(0.1, momentum=0.5), Adam(0.1)])
def test_a_number_by_itself_changes_where_it_is_chosen(optimizer):
    case = net(
        "scaled (float[2,3] x) => (float[2,3] y) { a = Mul (x, w) y = Mul (a, s) }",
        "squared_error", {"x": floats(2, 3), "labels": floats(2, 3)}, w=(3,), s=(),
    )  # fmt: skip
    with train(case.model, case.loss, optimizer, weights=["s"]) as trainer:
        before = trainer.weights()["s"]
        losses = [trainer.step(case.feeds) for _ in range(3)]
        assert trainer.weights()["s"] != before
    assert losses[2] < losses[0]


def test_a_statistic_that_is_a_weight_as_well_is_refused():
    model = load_from_string(cnn().model)
    (node,) = [node for node in model.graph.node if node.output[0] == "b"]
    node.input[3] = "b1"
    refused("`b1` is a running statistic and has another use", model.SerializeToString())


@pytest.mark.parametrize(("settings", "message"), [
    ({"threads": 0}, "`threads` is 0"),
    ({"recompute": -0.5}, r"`recompute` is -0\.5; it must be a share"),
    ({"recompute": float("nan")}, "`recompute` is nan; it must be a share"),
    ({"max_memory": "much"}, "much"),
    ({"without": ["wishes"]}, "Unknown pass `wishes`"),
])  # fmt: skip
def test_settings_that_cannot_be_are_refused(settings, message):
    refused(message, mlp().model, **settings)


@pytest.mark.parametrize("model", ["net.pt2", Path("net.pt2"), object()])
def test_what_came_from_no_onnx_file_is_not_saved(model, tmp_path):
    with pytest.raises(InputError, match="did not come from an ONNX file"):
        saving(model)({}, tmp_path / "new.onnx")


def test_constants_of_nodes_are_saved_as_well(tmp_path):
    model = load_from_string(mlp().model)
    kept = [t for t in model.graph.initializer if t.name != "b1"]
    (old,) = [t for t in model.graph.initializer if t.name == "b1"]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    constant = helper.make_node("Constant", [], ["b1"], value=numpy_helper.from_array(
        numpy_helper.to_array(old)))  # fmt: skip
    model.graph.node.insert(0, constant)
    case = mlp()
    with train(model.SerializeToString(), case.loss, Sgd()) as trainer:
        trainer.step(case.feeds)
        trainer.save(tmp_path / "new.onnx")
        saved, wanted = trainer.weights()["b1"], trainer.step(case.feeds)
    with train(tmp_path / "new.onnx", case.loss, Sgd()) as again:
        assert (again.weights()["b1"] == saved).all()
        assert again.step(case.feeds) == wanted


@pytest.mark.parametrize(("threads", "workers"), [(1, 0), (2, 2)])
def test_workers_are_for_kernels_of_one_thread(threads, workers):
    case = mlp()
    trainer = train(case.model, case.loss, Sgd(), threads=threads)
    with pytest.raises(InputError, match="one of the two must be 1"):
        trainer.step(case.feeds, workers=workers)
