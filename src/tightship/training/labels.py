"""Labels that a step is fed, held against the classes that its scores have."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship.errors import InputError
from tightship.graph import Graph
from tightship.graph.backward import IGNORED


@dataclass(frozen=True, slots=True)
class Labels:
    """What labels there may be.

    Attributes:
        name: The input that has them.
        output: The scores.
        scores: Shape of the scores.
        axis: Where classes are in it.
    """

    name: str
    output: str
    scores: tuple[int, ...]
    axis: int

    def check_shape(self, given: ArrayLike) -> None:
        """Refuse labels of a shape that they would have if classes were on another axis.

        Raises:
            InputError: They have.
        """
        shape = np.shape(given)
        for axis in _possible(self.scores):
            if axis != self.axis and shape == _of_labels(self.scores, axis) != self._shape():
                raise InputError(
                    f"`{self.name}` have shape {list(shape)}, as classes on axis {axis} of "
                    f"`{self.output}` {list(self.scores)} would have them; they are on axis "
                    f"{self.axis}, with labels of {list(self._shape())}. Give "
                    f"`classes_axis={axis}` to `train`, or such labels."
                )

    def check(self, labels: NDArray[Any]) -> None:
        """Refuse labels that are no classes; nothing is allocated while all are.

        Raises:
            InputError: One is none, and does not stand for one that does not count.
        """
        classes = self.scores[self.axis]
        if not labels.size or (labels.min() >= 0 and labels.max() < classes):
            return
        wrong = ((labels < 0) | (labels >= classes)) & (labels != IGNORED)
        if wrong.any():
            position = tuple(int(place) for place in np.argwhere(wrong)[0])
            raise InputError(
                f"Label {labels[position]} at {list(position)} of `{self.name}` is no class: "
                f"`{self.output}` has {classes} of them on axis {self.axis}, 0 to {classes - 1}; "
                f"{IGNORED} is one that does not count. {int(wrong.sum())} of {labels.size} labels "
                "are none."
            )

    def _shape(self) -> tuple[int, ...]:
        return _of_labels(self.scores, self.axis)


def labels_of(graph: Graph, output: str, name: str, axis: int | None) -> Labels:
    """The labels that scores are compared with.

    Args:
        graph: Its output has a known shape of at least two axes.
        output: The scores.
        name: The input of labels.
        axis: Where classes are; None for axis 1, where scores do not have three axes.

    Raises:
        InputError: The scores have three axes and nothing says which of them has the classes, or
            they are on another than axis 1 and the last.
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
            f"Classes of `{output}` {list(scores)} are on axis 1, as images have them, or on the "
            f"last, as texts do: give {ways}."
        )
    return Labels(name, output, scores, axis)


AMBIGUOUS = 3
"""Axes of scores that may be (batch, classes, length) and (batch, length, classes) as well."""


def _possible(scores: tuple[int, ...]) -> list[int]:
    return sorted({1, len(scores) - 1})


def _of_labels(scores: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*scores[:axis], *scores[axis + 1 :])
