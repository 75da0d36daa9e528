"""Lowered model: steps over operands in slots, not bound to memory yet."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from tightship._core import MemoryDesc, NativeKernel, PrimitiveDesc
from tightship.graph import DType
from tightship.graph.layout import size_bytes
from tightship.planner.schedule import AliasKind

if TYPE_CHECKING:
    from tightship.engine.kernels import Kernel
    from tightship.graph import Constant


KernelKind = Literal["onednn", "native", "numpy", "reference"]
"""Code that computes a step: oneDNN, our C++, NumPy, or `onnx.reference`."""


class Space(enum.Enum):
    """Memory that an operand's slot belongs to."""

    ARENA = "arena"
    EXTERNAL = "external"
    WEIGHTS = "weights"
    OBJECT = "object"
    """Python object outside every plan, whose size only the run determines."""


class Operand(NamedTuple):
    """Value in memory: a slot of the arena, an input or output, a packed weight, or an object.

    `desc` is its oneDNN layout; None means row-major, or a type that oneDNN cannot describe. The
    value begins `offset_bytes` into its slot. A tuple, because a new length makes hundreds.
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
        """Bytes that it takes, with the padding of its layout."""
        return self.desc.size_bytes if self.desc else size_bytes(self.dtype, self.shape)

    def under(self, desc: MemoryDesc) -> "Operand":
        """Describe the same bytes by another layout."""
        return Operand(
            self.name, self.space, self.slot, self.dtype, self.shape, desc, self.offset_bytes
        )


@dataclass(frozen=True, slots=True)
class Slot:
    """Bytes for a value, in the arena or, if `external`, in the caller's memory."""

    name: str
    size_bytes: int
    external: bool


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """Constant in the layout that its kernel needs.

    `source` describes the constant's own row-major bytes under the kernel's logical dimensions,
    `desc` the packed layout. Both are None if the constant stays row-major.
    """

    name: str
    constant: "Constant"
    size_bytes: int
    source: MemoryDesc | None = None
    desc: MemoryDesc | None = None


@dataclass(frozen=True, slots=True)
class PrimitiveWork:
    """oneDNN primitive and its operands by `DNNL_ARG_*` number."""

    desc: PrimitiveDesc
    arguments: tuple[tuple[int, Operand], ...]


@dataclass(frozen=True, slots=True)
class NativeWork:
    """Kernel of the native core, with its operands: inputs, outputs, then scratch if it has any.

    `make` makes it for a node's name, if its messages have that.
    """

    kernel: NativeKernel
    operands: tuple[Operand, ...]
    make: Callable[[str], NativeKernel] | None = None


@dataclass(frozen=True, slots=True)
class KernelWork:
    """NumPy kernel and its operands by position."""

    kernel: "Kernel"
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]

    def ready(self) -> "KernelWork":
        """Drop the kernel's node and constants, which may keep a file mapped."""
        return replace(self, kernel=replace(self.kernel, context=None))


@dataclass(frozen=True, slots=True)
class ReferenceWork:
    """Reference kernel, which takes and returns objects that it allocates itself."""

    run: Callable[[Sequence[object]], Sequence[object]]
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]


@dataclass(frozen=True, slots=True)
class CompiledWork:
    """Work that a native program has taken over; the library's description of it is gone."""


Work = PrimitiveWork | NativeWork | KernelWork | ReferenceWork | CompiledWork


@dataclass(frozen=True, slots=True)
class Sharing:
    """Output slot that may, or must, share the bytes of an input slot."""

    output: int
    input: int
    kind: AliasKind


class LoweredStep(NamedTuple):
    """Kernel call: its work, and what the planner must know of it."""

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
    """Graph lowered to kernels, which the planner places and the executor binds."""

    steps: tuple[LoweredStep, ...]
    slots: tuple[Slot, ...]
    weights: tuple[PackedWeight, ...]
    inputs: Mapping[str, Operand]
    outputs: Mapping[str, Operand]
    objects: Mapping[str, "Constant"]
    """Constants that are Python objects (strings)."""
    threads: int
    layouts: str = "library"
    """Layouts of images: `library` as oneDNN prefers them, or `blocked`."""
    workers: int = 1
    """Steps that runs have at once unless they say otherwise."""
