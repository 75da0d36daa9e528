"""Losses by name: of the module's output, with labels of the shape that it asks for."""

import pytest

torch = pytest.importorskip("torch", reason="needs the extra `torch`")

from tightship.errors import InputError  # noqa: E402 - torch comes first
from tightship.frontend.torch.losses import named_loss  # noqa: E402 - torch comes first


@pytest.mark.parametrize(
    ("shape", "axis", "labels"),
    [((4, 10), None, (4,)), ((2, 7, 10), -1, (2, 7)), ((2, 10, 7), 1, (2, 7)),
     ((2, 10, 3, 5), None, (2, 3, 5))],
)  # fmt: skip
def test_a_cross_entropy_has_labels_without_the_axis_of_classes(shape, axis, labels):
    scores = torch.randn(shape)
    loss, target = named_loss("cross_entropy", scores, axis)
    assert (tuple(target.shape), target.dtype) == (labels, torch.int64)
    target = torch.randint(0, 10, labels)
    wanted = torch.nn.functional.cross_entropy(scores.movedim(axis or 1, 1), target)
    assert loss(scores, target) == wanted


def test_a_squared_error_has_labels_like_the_output():
    output = torch.randn(3, 2)
    loss, target = named_loss("squared_error", output, None)
    assert target.shape == output.shape
    assert loss(output, output + 2) == pytest.approx(4)


@pytest.mark.parametrize(
    ("name", "output", "axis", "message"),
    [
        ("hinge", torch.ones(2, 2), None, "Unknown loss `hinge`"),
        ("cross_entropy", (torch.ones(2, 2),), None, "returns `tuple`"),
        ("cross_entropy", torch.ones(2), None, "an axis of samples"),
        ("cross_entropy", torch.ones(2, 2, 2), None, "give `classes_axis`"),
        ("cross_entropy", torch.ones(2, 2, 2, 2), 2, "`classes_axis` is 2"),
    ],
)
def test_what_a_loss_does_not_take_is_named(name, output, axis, message):
    with pytest.raises(InputError, match=message):
        named_loss(name, output, axis)
