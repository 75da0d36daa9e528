"""Merges groups of convolutions by constant weights, where none is fast for the groups given."""

from dataclasses import replace

import numpy as np

from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Derived, Node
from tightship.graph.constant import Array

MOST_MERGED = 64
"""Most groups merged into one, which multiplies the weights and the work by as much."""


def merges(node: Node) -> list[int]:
    """List how many groups of a convolution may become one, fewest first."""
    groups = node.integer("group", 1)
    return [count for count in range(2, min(groups, MOST_MERGED) + 1) if groups % count == 0]


def merged(builder: Builder, node: Node, count: int) -> Node:
    """Merge every `count` groups of a convolution, with zero weights between them.

    Axis 0 of the weights is split into groups; in a transposed convolution it counts inputs.
    """
    weights, groups = builder.constant(node.inputs[1]), node.integer("group")
    assert weights is not None
    dtype = weights.dtype
    rows, columns, *kernel = weights.shape
    shape = (rows, columns * count, *kernel)

    def compute() -> Array:
        whole = np.zeros(shape, dtype.numpy)
        for group, block in enumerate(np.split(weights.array(), groups)):
            first, above = group % count * columns, group * (rows // groups)
            whole[above : above + rows // groups, first : first + columns] = block
        return whole

    name = f"{node.inputs[1]}.merged{count}"
    recipe = "merged groups", groups, count
    builder.add_constant(name, Derived(dtype, shape, compute, (weights,), recipe))
    reads = (node.inputs[0], name, *node.inputs[2:])
    return replace(node, inputs=reads, attributes={**node.attributes, "group": groups // count})
