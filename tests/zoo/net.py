"""Networks written a line an operator, and the inputs that they are run on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship.sample.network import IR_VERSION, OPSET, Length, Network

Array = NDArray[Any]

__all__ = ["IR_VERSION", "OPSET", "Array", "Case", "Net"]


@dataclass(frozen=True, slots=True)
class Case:
    """A model and inputs to run it on."""

    model: bytes
    feeds: dict[str, Array]


class Net(Network):
    """A model being written, with a value for each input."""

    def __init__(self, seed: int = 0, opset: int = OPSET) -> None:
        super().__init__(seed, opset)
        self.feeds: dict[str, Array] = {}

    def input(self, name: str, value: ArrayLike) -> str:
        """Add an input of the shape and dtype of `value`, which it is run on."""
        array = np.asarray(value)
        self.feeds[name] = array
        return self.declare(name, array.dtype, array.shape)

    def normal(self, name: str, *shape: Length) -> str:
        """Add an input of standard normal numbers."""
        lengths = tuple(map(int, shape))
        return self.input(name, self.random.standard_normal(lengths).astype(np.float32))

    def case(self) -> Case:
        """Return the finished model, its output types inferred."""
        return Case(self.model().SerializeToString(), dict(self.feeds))
