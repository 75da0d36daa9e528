"""Digest of a decoder: its operators and the elements of its constants."""

import hashlib

from tightship.graph import Graph


def digest_of(graph: Graph) -> str:
    """Return a digest that differs if the graphs of two decoders, or their weights, differ."""
    found = hashlib.sha256()
    for node in graph.nodes:
        plain = {name: value for name, value in sorted(node.attributes.items())
                 if isinstance(value, int | float | str | bytes | tuple)}  # fmt: skip
        found.update(repr((node.operator, node.domain, node.inputs, node.outputs, plain)).encode())
    for name in sorted(graph.constants):
        constant = graph.constants[name]
        found.update(repr((name, constant.dtype.value, constant.shape)).encode())
        found.update(constant.array().tobytes())
        constant.release()
    return found.hexdigest()
