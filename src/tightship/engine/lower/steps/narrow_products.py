"""Chooses the constants that products multiply by in bfloat16, where a caller allows that.

Kernels round the computed operand, which they read from a copy, and add up in float32. Results of
products and all else stay float32.
"""

from collections.abc import Iterable
from dataclasses import replace

from tightship._core import onednn_cpu_isa
from tightship.engine.lower.passes.widened import Widened
from tightship.engine.lower.steps.layouts import BFLOAT16
from tightship.engine.lower.steps.packed_weights import stored_matrix
from tightship.errors import InputError
from tightship.graph import DType, Graph, Node
from tightship.graph.operators import row_of

CHANNELS_MIN = 4
"""Least channels of a group: with fewer, a convolution takes as long as its image from memory."""


def narrow_constants(graph: Graph, *, use_onednn: bool) -> frozenset[str]:
    """Return the names of float32 constants that are only weights or matrices of products.

    A table that is gathered from as well stays float32, since it would be held twice.

    Raises:
        InputError: The processor, or what oneDNN may use of it, does not multiply bfloat16.
    """
    if not use_onednn or not onednn_cpu_isa() & BFLOAT16:
        raise InputError(
            "`precision` is `bfloat16`, and oneDNN multiplies that with AVX-512 BF16 or AMX alone, "
            "which is not to be had here; leave `precision` out."
        )
    found, kept = set[str](), set[int]()
    for node in graph.nodes:
        for name in dict.fromkeys(node.reads):
            constant = graph.constants.get(name)
            if constant is None:
                continue
            if _multiplies(node, name) and name not in graph.outputs:
                found.add(name)
            else:
                kept.add(id(stored_matrix(constant) or constant))
    return frozenset(_worth_it(graph, found, kept))


def _worth_it(graph: Graph, names: Iterable[str], kept: set[int]) -> Iterable[str]:
    for name in names:
        constant = graph.constants[name]
        is_plain = constant.dtype is DType.FLOAT32 and not isinstance(constant, Widened)
        wide = len(constant.shape) == 2 or constant.shape[1] >= CHANNELS_MIN
        if is_plain and wide and id(stored_matrix(constant) or constant) not in kept:
            yield name


def _multiplies(node: Node, name: str) -> bool:
    """Whether a node reads a constant as the second operand of a product alone.

    The time steps of a recurrent layer, in our domain, are as much a product as the layer.
    """
    is_product = row_of(replace(node, domain="")).is_product
    return is_product and node.inputs[1] == name and node.reads.count(name) == 1
