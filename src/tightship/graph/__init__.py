"""What is computed: values, nodes, constants and the graph. No memory, no execution."""

from tightship.graph.constant import Constant, Derived, Fill, Inline, Mapped, MappedFile
from tightship.graph.ir import AttributeValue, Graph, Node, Value
from tightship.graph.layer import Layer
from tightship.graph.layout import Dimension, DType, Shape, element_count, size_bytes

__all__ = [
    "AttributeValue",
    "Constant",
    "DType",
    "Derived",
    "Dimension",
    "Fill",
    "Graph",
    "Inline",
    "Layer",
    "Mapped",
    "MappedFile",
    "Node",
    "Shape",
    "Value",
    "element_count",
    "size_bytes",
]
