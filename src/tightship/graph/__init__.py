"""Graph to compute: values, nodes and constants. No memory, no execution."""

from typing import TYPE_CHECKING

from tightship.graph.layout import Dimension, DType, Shape, agrees, element_count, size_bytes
from tightship.graph.mapped_file import MappedFile
from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.graph.constant import Constant, Derived, Fill, Inline, Mapped
    from tightship.graph.ir import AttributeValue, Graph, Node, Value
    from tightship.graph.layer import Backward, Forward, Layer
else:
    __getattr__ = late_names(
        __name__,
        constant="Constant Derived Fill Inline Mapped",
        ir="AttributeValue Graph Node Value",
        layer="Backward Forward Layer",
    )

__all__ = [
    "AttributeValue",
    "Backward",
    "Constant",
    "DType",
    "Derived",
    "Dimension",
    "Fill",
    "Forward",
    "Graph",
    "Inline",
    "Layer",
    "Mapped",
    "MappedFile",
    "Node",
    "Shape",
    "Value",
    "agrees",
    "element_count",
    "size_bytes",
]
