"""Adds steps of backward primitives, with operands and results bound by oneDNN's numbers."""

from collections.abc import Sequence

from tightship._core import PrimitiveDesc
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.program.program import Operand, PrimitiveWork
from tightship.graph import Node
from tightship.planner.schedule import AliasKind

DIFF_SRC, DIFF_DST, DIFF_WEIGHTS, DIFF_BIAS = 129, 145, 161, 169

Bound = Sequence[tuple[int, Operand]]
"""Operands by argument number of a primitive."""


def gradient_step(
    builder: Builder,
    node: Node,
    desc: PrimitiveDesc,
    reads: Bound,
    writes: Bound,
    in_place: Sequence[tuple[Operand, Operand]] = (),
) -> None:
    """Add a step; `in_place` lists results and the operands whose bytes they may take over."""
    builder.step(
        node,
        ("onednn", desc.implementation),
        (tuple([operand for _, operand in reads]), tuple([operand for _, operand in writes])),
        PrimitiveWork(desc, (*reads, *writes)),
        scratch_bytes=desc.scratchpad_bytes,
        share=[(target, source, AliasKind.IN_PLACE) for target, source in in_place],
    )
