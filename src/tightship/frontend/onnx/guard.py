"""Attributes on which the inference of onnx would not return, refused before it sees them."""

import re

from onnx import NodeProto

from tightship.errors import GraphError

_EINSUM = re.compile(rb"[A-Za-z.,\s]*(->[A-Za-z.\s]*)?")


def check_node(node: NodeProto, owner: str) -> None:
    """Refuse a node that the inference cannot be given.

    Raises:
        GraphError: An attribute is malformed.
    """
    if node.op_type != "Einsum":
        return
    for attribute in node.attribute:
        if attribute.name == "equation" and not _EINSUM.fullmatch(attribute.s):
            raise GraphError(
                f"{owner} has the equation {attribute.s[:64]!r}; it may hold letters, commas, "
                "dots and one `->`."
            )
