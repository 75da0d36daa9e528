"""Refusal of attributes on which onnx's shape inference would hang or abort."""

import re

from onnx import NodeProto

from tightship.errors import GraphError

_EINSUM = re.compile(rb"[A-Za-z.,\s]*(->[A-Za-z.\s]*)?")


def check_node(node: NodeProto, owner: str) -> None:
    """Check a node before it is passed to the inference.

    Raises:
        GraphError: An attribute is malformed.
    """
    if node.op_type not in ("Einsum", "Split"):
        return
    attributes = {attribute.name: attribute for attribute in node.attribute}
    equation, count = attributes.get("equation"), attributes.get("num_outputs")
    if equation is not None and not _EINSUM.fullmatch(equation.s):
        raise GraphError(
            f"{owner} has the equation {equation.s[:64]!r}; it may hold letters, commas, dots and "
            "one `->`."
        )
    if count is not None and count.i != len(node.output):
        raise GraphError(f"{owner} has num_outputs={count.i}, but {len(node.output)} outputs.")
