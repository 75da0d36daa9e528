"""Names defined at a point of a graph, outer graphs included."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from onnx import TypeProto

from tightship.errors import GraphError
from tightship.frontend.onnx.text import utf8
from tightship.graph import Constant, DType, element_count

KNOWN_ELEMENTS_MAX = 4096
"""Most elements of a constant whose value is used during reading."""

_KNOWN_FLOATS_MAX = 16


@dataclass(slots=True)
class Scope:
    """Names defined so far in a graph; others are looked up in `outer`.

    No name is defined twice in a scope and its outer scopes.
    """

    outer: "Scope | None" = None
    types: dict[str, TypeProto] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    captures: dict[str, None] = field(default_factory=dict)
    """Names taken from `outer`, in the order of their first use."""

    def define(self, name: str, type_: TypeProto, owner: str) -> None:
        """Define a name.

        Raises:
            GraphError: It is defined already.
        """
        if self._find(name) is not None:
            raise GraphError(f"{owner} defines `{name}` a second time.")
        self.types[utf8(name, "name")] = type_

    def type_of(self, name: str, owner: str) -> TypeProto:
        """Return the type of a name; a name of an outer scope becomes a capture.

        Raises:
            GraphError: It is not defined before this point.
        """
        type_ = self.types.get(name)
        if type_ is not None:
            return type_
        if self.outer is None or self._find(name) is None:
            raise GraphError(
                f"{owner} reads `{name}`, which no input, constant or earlier node defines: it is "
                "missing, or the graph is cyclic."
            )
        self.captures[name] = None
        return self.outer.type_of(name, owner)

    def constant_of(self, name: str) -> Constant | None:
        """Return the value of a name, if it is known before the run."""
        if name in self.types or self.outer is None:
            return self.constants.get(name)
        return self.outer.constant_of(name)

    def small_constant_of(self, name: str) -> Constant | None:
        """Return the value of a name, if it is known and small."""
        constant = self.constant_of(name)
        if constant is None or constant.dtype is DType.STRING:
            return None
        return constant if element_count(constant.shape) <= KNOWN_ELEMENTS_MAX else None

    def shape_data_of(self, names: Iterable[str]) -> dict[str, Constant]:
        """Return the known values that may determine a shape, by name: integers, or few floats."""
        data = {}
        for name in names:
            constant = self.small_constant_of(name)
            if constant is not None and _gives_shapes(constant):
                data[name] = constant
        return data

    def _find(self, name: str) -> TypeProto | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.types:
                return scope.types[name]
            scope = scope.outer
        return None


def _gives_shapes(constant: Constant) -> bool:
    dtype = constant.dtype
    if dtype in _FLOATS:
        return element_count(constant.shape) <= _KNOWN_FLOATS_MAX
    return dtype in _INTEGERS


_FLOATS = frozenset({DType.FLOAT16, DType.FLOAT32, DType.FLOAT64})
_INTEGERS = frozenset({DType.BOOL, DType.INT32, DType.INT64, DType.UINT8})
