"""Digest of a decoder: its operators and the elements of its constants."""

from collections.abc import Iterator

from tightship.graph import Constant, Graph
from tightship.sha256 import PIECE_BYTES, sha256


def digest_of(graph: Graph) -> str:
    """Return a digest that differs if the graphs of two decoders, or their weights, differ."""
    found = sha256()
    for node in graph.nodes:
        plain = {name: value for name, value in sorted(node.attributes.items())
                 if isinstance(value, int | float | str | bytes | tuple)}  # fmt: skip
        found.update(repr((node.operator, node.domain, node.inputs, node.outputs, plain)).encode())
    for name in sorted(graph.constants):
        constant = graph.constants[name]
        found.update(repr((name, constant.dtype.value, constant.shape)).encode())
        for piece in _pieces(constant):
            found.update(piece)
    return found.digest().hex()


def _pieces(constant: Constant) -> Iterator[bytes]:
    """Yield the elements; pages of a file are given back after each piece."""
    flat = constant.array().reshape(-1)
    count = max(PIECE_BYTES // flat.itemsize, 1)
    for start in range(0, flat.size, count):
        yield flat[start : start + count].tobytes()
        constant.release()
