"""Turns fused nodes into post-operations of a primitive."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.fused_nodes import eltwise_of
from tightship.engine.program.program import Operand
from tightship.graph import Node
from tightship.graph.operators import row_of
from tightship.planner.schedule import AliasKind

POST_OPERAND = 32768
"""`DNNL_ARG_ATTR_MULTIPLE_POST_OP_BASE`: operand of post-operation k is (k + 1) times this."""
SRC_1 = 2


@dataclass(slots=True)
class Epilogue:
    """Post-operations collected for a primitive, and the operands that they read."""

    attributes: Attributes = field(default_factory=Attributes)
    operands: list[tuple[int, str, MemoryDesc]] = field(default_factory=list)
    """Argument number, value and layout of each."""
    tied: Operand | None = None
    """Residual whose bytes the destination takes over."""
    count: int = 0
    key: tuple[Hashable, ...] = ()
    """Key that is equal for equal post-operations."""

    def add_eltwise(self, algorithm: str, alpha: float, beta: float) -> None:
        """Append an activation."""
        self.attributes.add_eltwise(algorithm, alpha, beta)
        self.key += (algorithm, alpha, beta)
        self.count += 1

    def add_sum(self, residual: Operand) -> None:
        """Append the addition of the destination's former content."""
        self.attributes.add_sum(1.0)
        self.tied = residual
        self.key += ("sum",)
        self.count += 1

    def add_binary(self, algorithm: str, name: str, desc: MemoryDesc) -> None:
        """Append a binary operation with another value."""
        self.attributes.add_binary(algorithm, desc)
        self.key += (algorithm, desc)
        self.operands.append((POST_OPERAND * (self.count + 1) | SRC_1, name, desc))
        self.count += 1

    def bound(self, builder: Builder) -> list[tuple[int, Operand]]:
        """Return the operands in their layouts."""
        return [(number, builder.in_layout(name, desc)) for number, name, desc in self.operands]

    @property
    def share(self) -> list[tuple[Operand, AliasKind]]:
        """Operand whose bytes the destination must take over, if there is one."""
        return [] if self.tied is None else [(self.tied, AliasKind.TIED)]


@dataclass(frozen=True, slots=True)
class Destination:
    """Layout that a primitive writes, and the shape of the value in it.

    The layout may flatten the value's leading axes into one, as in a product by a matrix.
    """

    desc: MemoryDesc
    shape: tuple[int, ...]
    may_tie: bool = False
    """Whether the destination, in the arena then, may take over a residual's bytes."""

    def layout_of(self, shape: tuple[int, ...]) -> MemoryDesc | None:
        """Return the layout for combining an operand of `shape` with this; None if impossible."""
        if shape == self.shape:
            return self.desc
        dims = self.desc.dims
        if len(dims) == len(self.shape):
            return MemoryDesc([1] * (len(dims) - len(shape)) + list(shape))
        if shape and all(dimension == 1 for dimension in shape[:-1]):
            return MemoryDesc([1] * (len(dims) - 1) + [shape[-1]])
        return MemoryDesc([1] * len(dims)) if not shape else None


def with_epilogue(
    builder: Builder,
    node: Node,
    layout: MemoryDesc,
    describe: Callable[[Epilogue], PrimitiveDesc | None],
) -> tuple[PrimitiveDesc, Epilogue]:
    """Describe a primitive with the fused nodes of `node`, with sums in place if possible.

    A residual is never accumulated over bytes that the primitive still reads, nor in an output of
    the caller's.

    Raises:
        NotCoveredError: A fused node cannot be a post-operation, or no primitive is fast.
    """
    shape = builder.value(node.writes[0]).static_shape
    for may_tie in (not builder.writes_outside(node.writes[0], layout), False):
        extra = epilogue(builder, node, Destination(layout, shape, may_tie))
        if desc := describe(extra):
            return desc, extra
    raise NotCoveredError


def epilogue(builder: Builder, node: Node, destination: Destination) -> Epilogue:
    """Collect the fused nodes of `node` as post-operations.

    If the destination `may_tie`, one residual of its type that is read only here is accumulated in
    place.

    Raises:
        NotCoveredError: A node cannot be a post-operation.
    """
    result = Epilogue()
    name = node.outputs[0]
    for fused in node.fused:
        eltwise = eltwise_of(builder, fused)
        if eltwise is not None:
            result.add_eltwise(*eltwise)
        else:
            _add_binary(builder, result, (node, fused), name, destination)
        name = fused.outputs[0]
    return result


def _add_binary(
    builder: Builder,
    result: Epilogue,
    nodes: tuple[Node, Node],
    name: str,
    destination: Destination,
) -> None:
    """Append the second of `nodes`, which is fused into the first and applied to `name`."""
    head, fused = nodes
    algorithm = row_of(fused).binary
    require(bool(algorithm))
    other = fused.inputs[1 if fused.inputs[0] == name else 0]
    shape = builder.value(other).static_shape
    desc = covered(destination.layout_of(shape))
    sums = algorithm == "add" and shape == destination.shape and result.tied is None
    if sums and destination.may_tie and builder.options.in_place:
        constant = builder.constant(other) is not None
        residual = None if constant else builder.overwritable(head, other, desc)
        if residual is not None:
            result.add_sum(residual)
            return
    result.add_binary(algorithm, other, desc)
