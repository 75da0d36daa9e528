"""Writes the nodes, constants and values of a graph with caches of a fixed number of rows."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike

from tightship.graph import AttributeValue, Constant, DType, Inline, Node, Value
from tightship.graph.new_names import NewNames

VERSION = 24
"""Opset of the nodes that are written."""


class Beyond(IntEnum):
    """Elements of an extended axis beyond the rows in use."""

    ZERO = 0
    FINITE = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class Extent:
    """Axis that has the capacity's length instead of the past length plus `added`."""

    added: int
    beyond: Beyond


Axes = dict[int, Extent]


@dataclass(slots=True)
class Writer:
    """Graph under construction.

    Attributes:
        names: Unused names.
        capacity: Rows of caches.
        past: Input with the past length, int64 of one element.
    """

    names: NewNames
    capacity: int
    past: str
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Constant] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    _shared: dict[tuple[object, ...], str] = field(default_factory=dict)

    def constant(self, value: ArrayLike, dtype: DType = DType.INT64) -> str:
        """Add a constant; equal ones have one name."""
        array = np.asarray(value, dtype.numpy)
        key = "constant", dtype, array.shape, array.tobytes()
        if key not in self._shared:
            name = self._shared[key] = self.names.new("capacity.constant")
            self.constants[name] = Inline(array)
            self.values[name] = Value(name, dtype, array.shape)
        return self._shared[key]

    def node(
        self,
        operator: str,
        inputs: tuple[str, ...],
        dtype: DType,
        shape: tuple[int, ...],
        output: str = "",
        **attributes: AttributeValue,
    ) -> str:
        """Add a node with one output, of this type; return the output's name."""
        name = output or self.names.new(f"capacity.{operator}")
        self.values[name] = Value(name, dtype, shape)
        self.nodes.append(
            Node(f"{name}/{operator}", operator, inputs, (name,), attributes, version=VERSION)
        )
        return name

    def past_plus(self, added: int) -> str:
        """Return the past length plus a number, as int64 of one element."""
        if not added:
            return self.past
        return self._once(
            ("plus", added),
            lambda: self.node("Add", (self.past, self.constant([added])), DType.INT64, (1,)),
        )

    def positions(self, added: int, count: int) -> str:
        """Return the past length plus `added`, `added + 1`, ... as int64 of `count` elements."""
        numbers = np.arange(added, added + count)
        return self._once(
            ("positions", added, count),
            lambda: self.node("Add", (self.past, self.constant(numbers)), DType.INT64, (count,)),
        )

    def in_use(self, added: int) -> str:
        """Return which rows of the capacity are in use, as booleans."""
        inputs = self.constant(np.arange(self.capacity)), self.past_plus(added)
        return self._once(
            ("in use", added), lambda: self.node("Less", inputs, DType.BOOL, (self.capacity,))
        )

    def masked(self, name: str, axis: int, extent: Extent, fill: ArrayLike) -> str:
        """Return a value with another element beyond the rows in use of an axis."""
        value = self.values[name]
        assert value.dtype is not None
        rank = len(value.static_shape)
        mask = self.in_use(extent.added)
        if axis != rank - 1:
            shape = (self.capacity, *(1,) * (rank - 1 - axis))
            mask = self.node("Reshape", (mask, self.constant(shape)), DType.BOOL, shape)
        inputs = mask, name, self.constant(fill, value.dtype)
        return self.node("Where", inputs, value.dtype, value.static_shape)

    def _once(self, key: tuple[object, ...], write: Callable[[], str]) -> str:
        if key not in self._shared:
            self._shared[key] = write()
        return self._shared[key]
