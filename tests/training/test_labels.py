"""Axis of scores that has the classes, and invalid labels."""

import numpy as np
import pytest
from onnx import helper, load_from_string

from tests.training.nets import floats, labels, net, transformer
from tightship import InputError, Sgd, train
from tightship.training.labels import Labels


def scores(*shape):
    """A model whose scores have a shape."""
    text = ",".join(map(str, shape))
    return net(
        f"scores (float[{text}] x) => (float[{text}] y) {{ y = Mul (x, w) }}", "cross_entropy",
        {"x": floats(*shape)}, w=shape,
    )  # fmt: skip


def by_hand(x, labels, axis):
    """The mean over labels that count."""
    x = np.moveaxis(x.astype(np.float64), axis, -1).reshape(-1, x.shape[axis])
    labels = labels.reshape(-1)
    log = x - np.log(np.exp(x).sum(1, keepdims=True))
    counted = labels != -100
    return -log[np.flatnonzero(counted), labels[counted]].mean()


@pytest.mark.parametrize(("shape", "axis", "found"), [
    ((4, 5), None, 1), ((4, 5), 1, 1), ((4, 5), -1, 1),
    ((4, 5, 3), 1, 1), ((4, 5, 3), 2, 2), ((4, 5, 3), -1, 2),
    ((4, 5, 3, 2), None, 1), ((4, 5, 3, 2), -1, 3),
])  # fmt: skip
@pytest.mark.parametrize("is_ignoring", [False, True])
def test_a_loss_is_over_the_axis_of_classes(shape, axis, found, is_ignoring):
    case = scores(*shape)
    wanted = labels(shape[found], *shape[:found], *shape[found + 1 :])
    if is_ignoring:
        wanted.reshape(-1)[::3] = -100
    with train(case.model, case.loss, Sgd(1.0), classes_axis=axis) as trainer:
        given = case.feeds["x"] * trainer.weights()["w"]
        losses = [trainer.step(case.feeds | {"labels": wanted}) for _ in range(2)]
    assert losses[0] == pytest.approx(by_hand(given, wanted, found), rel=1e-5)
    assert losses[1] < losses[0]


def test_scores_of_texts_need_no_reshaping_of_their_own():
    case, whole = transformer(), load_from_string(transformer().model)
    assert whole.graph.node[-1].op_type == "Reshape"
    del whole.graph.node[-1]
    whole.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", 1, [2, 6, 11]))
    feeds = case.feeds | {"labels": case.feeds["labels"].reshape(2, 6)}
    with (
        train(case.model, case.loss, Sgd(0.1)) as rows,
        train(whole.SerializeToString(), case.loss, Sgd(0.1), classes_axis=-1) as texts,
    ):
        for _ in range(3):
            assert texts.step(feeds) == rows.step(case.feeds)
        assert texts.memory.arena_bytes == rows.memory.arena_bytes


@pytest.mark.parametrize("axis", [None, 0, 3, -3])
def test_an_axis_that_is_not_said_or_cannot_be_is_asked_for(axis):
    with pytest.raises(InputError, match=(
        r"The classes of `y` \[4, 5, 3\] must be on axis 1.* `classes_axis=1` with 5 classes and "
        r"labels of \[4, 3\] or `classes_axis=2` with 3 classes and labels of \[4, 5\]"
    )):  # fmt: skip
        train(scores(4, 5, 3).model, "cross_entropy", Sgd(), classes_axis=axis)


def test_an_error_names_the_axis_that_labels_fit():
    case = scores(4, 5, 3)
    with (
        train(case.model, case.loss, Sgd(), classes_axis=1) as trainer,
        pytest.raises(
            InputError, match=r"has shape \[4, 5\], which fits classes on axis 2.*axis=2`"
        ),
    ):
        trainer.step(case.feeds | {"labels": labels(3, 4, 5)})


@pytest.mark.parametrize("wrong", [-1, 5, -101])
def test_a_label_that_is_not_a_class_is_reported_with_its_place(wrong):
    case = scores(4, 5, 3)
    given = labels(5, 4, 3)
    given[2, 1], given[3, 0], given[0, 0] = wrong, wrong, -100
    with (
        train(case.model, case.loss, Sgd(), classes_axis=1) as trainer,
        pytest.raises(InputError, match=(
            rf"Label {wrong} at \[2, 1\] of `labels` is not a class: `y` has 5 classes on axis 1, "
            r"0 to 4, and -100 is ignored\. 2 of 12 labels are not classes"
        )),
    ):  # fmt: skip
        trainer.step(case.feeds | {"labels": given})


def test_labels_of_nothing_are_fine():
    Labels("labels", "y", (0, 5), 1).check(np.zeros(0, np.int64))
