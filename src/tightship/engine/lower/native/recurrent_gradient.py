"""Emits gradients of recurrent layers: one kernel for all steps."""

from collections.abc import Callable

from tightship._core import NativeKernel
from tightship.engine.lower.passes.split_recurrent_gradient import BACK_READ, BACK_WRITTEN
from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Node

OVER = {"input_gates": "gates", "state_gates": "shares"}
"""Gradients that may overwrite the value that they belong to."""


def cell(name: str) -> Callable[[Builder, Node], None]:
    """Emit the way back through a kind of cell."""
    return lambda builder, node: _emit(builder, node, name)


def _emit(builder: Builder, node: Node, cell_name: str) -> None:
    """Emit gradients of the gates, over what inputs and states give them where these die."""
    reads = {
        part: builder.dense(name) for part, name in zip(BACK_READ, node.inputs, strict=True) if name
    }
    writes = {
        part: builder.output(name)
        for part, name in zip(BACK_WRITTEN, node.outputs, strict=True)
        if name
    }
    steps, hidden = node.integer("times"), reads["weights"].shape[1]
    kernel = NativeKernel.recurrent_gradient(
        cell_name,
        (steps, writes["input_gates"].shape[0] // steps, hidden),
        bool(node.attributes["is_reversed"]),
        bool(node.attributes["is_cut"]),
        [*reads, *writes],
    )
    builder.native(
        node,
        ("recurrent_gradient", kernel),
        list(reads.values()),
        list(writes.values()),
        in_place=[
            (writes[part], reads[source])
            for part, source in OVER.items()
            if part in writes and source in reads
        ],
    )
