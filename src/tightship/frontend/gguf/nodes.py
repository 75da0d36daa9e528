"""Nodes of a decoder under construction, as those of an ONNX file."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from onnx import NodeProto, TensorProto, helper, numpy_helper

from tightship.frontend.onnx.element import DTYPES
from tightship.graph import Constant

CONTRIBUTED = frozenset({"GroupQueryAttention"})
OWN = frozenset({"DequantizeBlocks", "DequantizeRows"})
DOMAINS = {
    **dict.fromkeys(CONTRIBUTED, "com.microsoft"),
    **dict.fromkeys(OWN, "tightship"),
}
"""Domains of operators that ONNX itself does not have."""
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}
"""ONNX's numbers of element types."""

Attribute = int | float | str | Sequence[int]


@dataclass(slots=True)
class Nodes:
    """Nodes written so far, small constants, and those whose bytes stay in a file."""

    nodes: list[NodeProto] = field(default_factory=list)
    tensors: list[TensorProto] = field(default_factory=list)
    stored: dict[str, Constant] = field(default_factory=dict)
    prefix: str = ""
    """Beginning of the names of nodes, such as that of a layer; `begin` sets it."""
    _first: int = 0
    """Nodes before those with the prefix, from which they are numbered."""
    _numbers: dict[tuple[str, bytes], str] = field(default_factory=dict)

    def begin(self, prefix: str) -> None:
        """Begin the names of the next nodes so; equal layers have equal names after it."""
        self.prefix, self._first = prefix, len(self.nodes)

    def __call__(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Write a node; return the name of its only output."""
        name = f"{self.prefix}{operator}.{len(self.nodes) - self._first}"
        return self.many(operator, [name], *inputs, **attributes)[0]

    def many(
        self, operator: str, outputs: list[str], *inputs: str, **attributes: Attribute
    ) -> list[str]:
        """Write a node with outputs of these names; return them."""
        name = f"{outputs[0]}/{operator}"
        domain = DOMAINS.get(operator, "")
        self.nodes.append(
            helper.make_node(operator, inputs, outputs, name, domain=domain, **attributes)
        )
        return outputs

    def numbers(self, value: ArrayLike, dtype: DTypeLike = np.int64) -> str:
        """Add a small constant, once for equal ones; return its name."""
        array = np.asarray(value, dtype)
        key = f"{array.dtype.str}{array.shape}", array.tobytes()
        if key not in self._numbers:
            self._numbers[key] = f"number.{len(self._numbers)}"
            self.tensors.append(numpy_helper.from_array(array, self._numbers[key]))
        return self._numbers[key]

    def constant(self, name: str, constant: Constant) -> str:
        """Add a constant whose bytes stay where they are; return its name."""
        tensor = TensorProto(name=name, data_type=NUMBERS[constant.dtype], dims=constant.shape)
        self.tensors.append(tensor)
        self.stored[name] = constant
        return name
