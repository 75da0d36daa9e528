"""A lowered model: steps over operands whose places are known, nothing bound yet."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tightship._core import MemoryDesc, NativeKernel, PrimitiveDesc
from tightship.engine.program.kernel_kind import KernelKind
from tightship.graph import DType
from tightship.graph.layout import size_bytes
from tightship.planner.schedule import AliasKind

if TYPE_CHECKING:
    from tightship.engine.kernels import Kernel
    from tightship.graph import Constant


class Space(enum.Enum):
    """Which memory an operand's slot is in."""

    ARENA = "arena"
    EXTERNAL = "external"
    WEIGHTS = "weights"
    OBJECT = "object"
    """Outside every plan: a Python object whose bytes only the run knows."""


class Operand(NamedTuple):
    """A value somewhere: slot of the arena, input or output, packed weight, or object.

    `desc` is its oneDNN layout; None means row-major, or nothing oneDNN could describe. It begins
    `offset_bytes` into its slot. A tuple, because a new length makes hundreds.
    """

    name: str
    space: Space
    slot: int
    dtype: DType
    shape: tuple[int, ...]
    desc: MemoryDesc | None = None
    offset_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """Bytes it takes where it is, padding of its layout included."""
        return self.desc.size_bytes if self.desc else size_bytes(self.dtype, self.shape)

    def under(self, desc: MemoryDesc) -> "Operand":
        """The same bytes described otherwise."""
        return Operand(
            self.name, self.space, self.slot, self.dtype, self.shape, desc, self.offset_bytes
        )


@dataclass(frozen=True, slots=True)
class Slot:
    """Room for a value: in the arena, or outside where the caller has an input or output."""

    name: str
    size_bytes: int
    external: bool


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A constant as its kernel wants it.

    `source` describes the constant's own row-major bytes under the kernel's logical
    dimensions; `desc` the layout it is packed into. Both are None for one kept row-major.
    """

    name: str
    constant: "Constant"
    size_bytes: int
    source: MemoryDesc | None = None
    desc: MemoryDesc | None = None


@dataclass(frozen=True, slots=True)
class PrimitiveWork:
    """A oneDNN primitive and its operands by `DNNL_ARG_*` number."""

    desc: PrimitiveDesc
    arguments: tuple[tuple[int, Operand], ...]


@dataclass(frozen=True, slots=True)
class NativeWork:
    """A kernel of the native core; operands in its order: inputs, then outputs.

    Its scratch, where it has booked some, follows them.
    """

    kernel: NativeKernel
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class KernelWork:
    """A NumPy kernel, operands by position."""

    kernel: "Kernel"
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]

    def ready(self) -> "KernelWork":
        """The same without what the kernel was made for, which may have a file mapped."""
        return replace(self, kernel=replace(self.kernel, context=None))


@dataclass(frozen=True, slots=True)
class ReferenceWork:
    """A reference kernel: takes and returns objects it allocates itself."""

    run: Callable[[Sequence[object]], Sequence[object]]
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]


@dataclass(frozen=True, slots=True)
class CompiledWork:
    """Work that a native program has taken over: the library's description of it is gone."""


Work = PrimitiveWork | NativeWork | KernelWork | ReferenceWork | CompiledWork


@dataclass(frozen=True, slots=True)
class Sharing:
    """An output slot that may, or must, be an input slot's bytes."""

    output: int
    input: int
    kind: AliasKind


class LoweredStep(NamedTuple):
    """One kernel call: its work, and what the planner must know of it."""

    name: str
    operator: str
    kernel: KernelKind
    implementation: str
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    work: Work
    scratch_bytes: int = 0
    sharing: tuple[Sharing, ...] = ()
    dynamic_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Lowered:
    """A graph as kernels: what `planner` places and `executor` binds."""

    steps: tuple[LoweredStep, ...]
    slots: tuple[Slot, ...]
    weights: tuple[PackedWeight, ...]
    inputs: Mapping[str, Operand]
    outputs: Mapping[str, Operand]
    objects: Mapping[str, "Constant"]
    """Constants that are objects: strings."""
    threads: int
    layouts: str = "library"
    """Of images: as the library prefers them, or `blocked`."""
