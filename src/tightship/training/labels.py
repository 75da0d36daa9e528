"""Checks labels of a training step against the classes of its scores."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship.errors import InputError
from tightship.graph import Graph
from tightship.graph.backward import IGNORED


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels that a loss accepts.

    Attributes:
        name: The input of labels.
        output: The output of scores.
        scores: Shape of the scores.
        axis: Axis of the classes in the scores.
    """

    name: str
    output: str
    scores: tuple[int, ...]
    axis: int

    def check_shape(self, given: ArrayLike) -> None:
        """Refuse labels whose shape fits classes on another axis only.

        Raises:
            InputError: The labels have such a shape.
        """
        shape = np.shape(given)
        for axis in _possible(self.scores):
            if axis != self.axis and shape == _of_labels(self.scores, axis) != self._shape():
                raise InputError(
                    f"`{self.name}` has shape {list(shape)}, which fits classes on axis {axis} of "
                    f"`{self.output}` {list(self.scores)}; the classes are on axis {self.axis}, "
                    f"with labels of shape {list(self._shape())}. Give `classes_axis={axis}` to "
                    "`train`, or labels of that shape."
                )

    def check(self, labels: NDArray[Any]) -> None:
        """Refuse labels that are not classes, without allocating memory if all are.

        Raises:
            InputError: A label is neither a class nor the label that is ignored.
        """
        classes = self.scores[self.axis]
        if not labels.size or (labels.min() >= 0 and labels.max() < classes):
            return
        wrong = ((labels < 0) | (labels >= classes)) & (labels != IGNORED)
        if wrong.any():
            position = tuple(int(place) for place in np.argwhere(wrong)[0])
            raise InputError(
                f"Label {labels[position]} at {list(position)} of `{self.name}` is not a class: "
                f"`{self.output}` has {classes} classes on axis {self.axis}, 0 to {classes - 1}, "
                f"and {IGNORED} is ignored. {int(wrong.sum())} of {labels.size} labels are not "
                "classes."
            )

    def _shape(self) -> tuple[int, ...]:
        return _of_labels(self.scores, self.axis)


def labels_of(graph: Graph, output: str, name: str, axis: int | None) -> Labels:
    """Describe the labels that scores are compared with.

    Args:
        graph: A graph whose output has a known shape of at least two axes.
        output: The output of scores.
        name: The input of labels.
        axis: Axis of the classes; None for axis 1, unless the scores have three axes.

    Raises:
        InputError: The axis is neither 1 nor the last, or the scores have three axes and the axis
            is not given.
    """
    scores = graph.value(output).static_shape
    possible = _possible(scores)
    if axis is not None:
        axis = axis + len(scores) if axis < 0 else axis
    elif len(scores) != AMBIGUOUS:
        axis = 1
    if axis not in possible:
        ways = " or ".join(
            f"`classes_axis={each}` with {scores[each]} classes and labels of "
            f"{list(_of_labels(scores, each))}"
            for each in possible
        )
        raise InputError(
            f"The classes of `{output}` {list(scores)} must be on axis 1, as with images, or on "
            f"the last axis, as with texts: give {ways}."
        )
    return Labels(name, output, scores, axis)


AMBIGUOUS = 3
"""Number of axes with which scores may be (batch, classes, length) or (batch, length, classes)."""


def _possible(scores: tuple[int, ...]) -> list[int]:
    return sorted({1, len(scores) - 1})


def _of_labels(scores: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*scores[:axis], *scores[axis + 1 :])
