"""Emitters: a node as kernels of the native core, for what oneDNN has no fast primitive for.

An emitter returns False, or raises NotCoveredError, having added nothing, where its kernels do
not cover the node.
"""

from collections.abc import Callable

from tightship.engine.kernels.site import NotCoveredError
from tightship.engine.lower.builder import Builder
from tightship.engine.lower.native.attention import attention
from tightship.engine.lower.native.elementwise import ELEMENTWISE
from tightship.engine.lower.native.generate import GENERATE
from tightship.engine.lower.native.indexed import INDEXED
from tightship.engine.lower.native.lookup import LOOKUP
from tightship.engine.lower.native.movement import MOVEMENT
from tightship.engine.lower.native.quantize import dequantize, quantize
from tightship.engine.lower.native.ranks import RANKS
from tightship.engine.lower.native.reduction import REDUCTION
from tightship.engine.lower.native.rotary import rotary
from tightship.engine.lower.native.rows import NORMALIZATION
from tightship.engine.lower.native.sequence import SEQUENCE
from tightship.graph import Node

NativeEmitter = Callable[[Builder, Node], bool]

NATIVE_EMITTERS: dict[tuple[str, str], NativeEmitter] = {
    **ELEMENTWISE,
    ("tightship", "Attention"): attention,
    ("tightship", "Rotary"): rotary,
    **GENERATE,
    **INDEXED,
    **LOOKUP,
    **MOVEMENT,
    **NORMALIZATION,
    **RANKS,
    **REDUCTION,
    **SEQUENCE,
    ("", "DequantizeLinear"): dequantize,
    ("", "QuantizeLinear"): quantize,
}
"""By domain and operator."""


def emit_native(builder: Builder, node: Node) -> bool:
    """Whether native kernels cover the node, whose values are planned; its steps are added."""
    emitter = NATIVE_EMITTERS.get((node.domain, node.operator))
    try:
        return emitter is not None and emitter(builder, node)
    except NotCoveredError:
        return False
