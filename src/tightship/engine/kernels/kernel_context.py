"""Context of a kernel: a node with its types, attributes and known inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel
from tightship.graph import Constant, Graph, Layer, Node, Value


class NotCoveredError(Exception):
    """Node that this tier has no kernel for; `numpy_kernel` turns it into None."""


@dataclass(frozen=True, slots=True)
class KernelContext:
    """Node whose present inputs and outputs are all static.

    Negative axes count from the end everywhere.
    """

    node: Node
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value | None, ...]
    constants: Mapping[str, Constant]
    consulted: dict[str, Constant] = field(default_factory=dict)
    """Constants that were read."""

    @property
    def version(self) -> int:
        """Opset version that defines the operator."""
        return self.node.version

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        return self.node.integer(name, default)

    def number(self, name: str, default: float) -> float:
        """Return a floating-point attribute."""
        return self.node.number(name, default)

    def text(self, name: str, default: str) -> str:
        """Return a string attribute."""
        value = self.node.attributes.get(name, default)
        if isinstance(value, bytes):
            return value.decode()
        assert isinstance(value, str), (self.node.name, name, value)
        return value

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return a list attribute; None if the node does not set it."""
        value = self.node.attributes.get(name)
        if value is None:
            return None
        assert isinstance(value, tuple), (self.node.name, name, value)
        return tuple(int(element) for element in value)

    def tensor(self, name: str) -> Array | None:
        """Return the elements of a tensor attribute; None if the node does not set it."""
        value = self.node.attributes.get(name)
        if value is None:
            return None
        assert not isinstance(value, (int, float, str, bytes, tuple, Graph, Layer))
        return value.array()

    def has_input(self, index: int) -> bool:
        """Whether the node has this input."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def has_output(self, index: int) -> bool:
        """Whether the node has this output."""
        return index < len(self.outputs) and self.outputs[index] is not None

    def input(self, index: int) -> Value:
        """Return an input that must be present."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if value is None:
            raise NotCoveredError
        return value

    def output(self, index: int = 0) -> Value:
        """Return an output that must be present."""
        value = self.outputs[index] if index < len(self.outputs) else None
        if value is None:
            raise NotCoveredError
        return value

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self.input(index).static_shape

    def dtype(self, index: int) -> np.dtype[np.generic]:
        """Return the NumPy dtype of an input."""
        return _numpy(self.input(index))

    def output_shape(self, index: int = 0) -> tuple[int, ...]:
        """Return the shape of an output."""
        return self.output(index).static_shape

    def output_dtype(self, index: int = 0) -> np.dtype[np.generic]:
        """Return the NumPy dtype of an output."""
        return _numpy(self.output(index))

    def parameter(self, index: int) -> Array | None:
        """Return the elements of an input that shapes the kernel; None if it is left out.

        Raises:
            NotCoveredError: The input is present, but known only while running.
        """
        if not self.has_input(index):
            return None
        constant = self.constants.get(self.node.inputs[index])
        if constant is None:
            raise NotCoveredError
        self.consulted[self.node.inputs[index]] = constant
        return constant.array()

    def axes(self, index: int | None, attribute: str = "axes") -> tuple[int, ...] | None:
        """Return axes from an input (since the opset that made it one) or from an attribute."""
        if index is None or attribute in self.node.attributes:
            return self.integers(attribute)
        elements = self.parameter(index)
        return None if elements is None else tuple(int(axis) for axis in elements.reshape(-1))

    def same_type(self, *candidates: int) -> tuple[tuple[int, int], ...]:
        """Return pairs of output 0 and those inputs that have its dtype and shape."""
        output = self.output()
        return tuple(
            (0, index)
            for index in candidates
            if self.has_input(index)
            and self.input(index).dtype == output.dtype
            and self.shape(index) == output.static_shape
        )

    def read_once(self, *candidates: int) -> tuple[tuple[int, int], ...]:
        """Return the pairs of `same_type` without inputs that the node reads twice."""
        names = self.node.inputs
        pairs = self.same_type(*candidates)
        return tuple(pair for pair in pairs if names.count(names[pair[1]]) == 1)


Builder = Callable[[KernelContext], Kernel]
T = TypeVar("T")


def require(condition: bool) -> None:  # noqa: FBT001
    """Leave the node to the next tier unless `condition` holds.

    Raises:
        NotCoveredError: The condition does not hold.
    """
    if not condition:
        raise NotCoveredError


def covered(found: T | None) -> T:
    """Return what was found; leave the node to the next tier if that is None.

    Raises:
        NotCoveredError: It is None.
    """
    if found is None:
        raise NotCoveredError
    return found


def axis_of(axis: int, rank: int) -> int:
    """Return the axis counted from the front."""
    require(-rank <= axis < max(rank, 1))
    return axis + rank if axis < 0 else axis


def _numpy(value: Value) -> np.dtype[np.generic]:
    assert value.dtype is not None, value
    return value.dtype.numpy
