"""Finds convolutions between row-major values, which need not have channels last.

Operators are near each other if values between them pass only through such as keep a layout. A
convolution is lone if no operator near it chooses another layout.
"""

from collections.abc import Collection

from tightship.graph import Graph
from tightship.graph.operators import Category, row_of

CARRYING = (Category.ELEMENTWISE, Category.JOINING, Category.CUTTING)
"""Kinds of operators that keep the layout of an image."""
IMAGE_KERNELS = (
    "convolution.", "movement.channel_shuffle", "normalization.batch_normalization",
    "normalization.local_response", "pooling.", "resampling.",
)  # fmt: skip
"""Emitters of oneDNN's primitives that read or write images in a layout of their choice."""


def lone(graph: Graph, fitting: Collection[str], beside: Collection[str] = ()) -> frozenset[str]:
    """Return the nodes that no image operator is near except others that fit.

    Args:
        graph: Graph of the nodes.
        fitting: Names of the nodes to choose from, whose kernels read and write row-major images.
        beside: Operators that no chosen node may be near either.
    """
    above: dict[str, str] = {}

    def region(name: str) -> str:
        while name in above:
            name = above[name]
        return name

    others: list[str] = []
    for node in graph.nodes:
        row = row_of(node)
        if node.operator in beside:
            others += (*node.reads, *node.writes)
        is_image = (row.onednn or "").startswith(IMAGE_KERNELS)
        if not is_image and row.category not in CARRYING:
            continue
        names = [name for name in (*node.reads, *node.writes) if name not in graph.constants]
        first = region(names[0])
        for name in names[1:]:
            if (other := region(name)) != first:
                above[other] = first
        if is_image and node.name not in fitting:
            others.append(names[0])
    held = {region(name) for name in others}
    return frozenset(
        node.name
        for node in graph.nodes
        if node.name in fitting and region(node.inputs[0]) not in held
    )
