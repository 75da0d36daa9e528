"""Lowered model: steps over operands in slots, not bound to memory yet."""

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from tightship._core import MemoryDesc, NativeKernel, PrimitiveDesc, SizedOperator
from tightship.graph import DType
from tightship.graph.layout import size_bytes
from tightship.planner.schedule import AliasKind

if TYPE_CHECKING:
    from tightship.engine.kernels import Kernel
    from tightship.graph import Constant
    from tightship.planner import SchedulePlan


KernelKind = Literal["onednn", "native", "numpy", "reference"]
"""Code that computes a step: oneDNN, our C++, NumPy, or `onnx.reference`."""


class Space(enum.Enum):
    """Memory that an operand's slot belongs to."""

    ARENA = "arena"
    EXTERNAL = "external"
    WEIGHTS = "weights"
    OBJECT = "object"
    """Python object outside every plan, whose size only the run determines."""

    __hash__ = object.__hash__  # that of Enum runs in Python, for each look-up


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


class Slot(NamedTuple):
    """Bytes for a value, in the arena or, if `external`, in the caller's memory."""

    name: str
    size_bytes: int
    external: bool


class PackedWeight(NamedTuple):
    """Constant in the layout that its kernel needs.

    `source` describes the constant's own row-major bytes under the kernel's logical dimensions,
    `desc` the packed layout. Both are None if the constant stays row-major.
    """

    name: str
    constant: "Constant"
    size_bytes: int
    source: MemoryDesc | None = None
    desc: MemoryDesc | None = None


class PrimitiveWork(NamedTuple):
    """oneDNN primitive and its operands by `DNNL_ARG_*` number."""

    desc: PrimitiveDesc
    arguments: tuple[tuple[int, Operand], ...]


class NativeWork(NamedTuple):
    """Kernel of the native core, with its operands: inputs, outputs, then scratch if it has any.

    `make` makes it for a node's name, if its messages have that.
    """

    kernel: NativeKernel
    operands: tuple[Operand, ...]
    make: Callable[[str], NativeKernel] | None = None


class KernelWork(NamedTuple):
    """NumPy kernel and its operands by position."""

    kernel: "Kernel"
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]

    def ready(self) -> "KernelWork":
        """Drop the kernel's node and constants, which may keep a file mapped."""
        return self._replace(kernel=replace(self.kernel, context=None))


class ReferenceWork(NamedTuple):
    """Reference kernel, which takes and returns objects that it allocates itself.

    `native` is an operator of the core that computes the same from most operands, without Python.
    """

    run: Callable[[Sequence[object]], Sequence[object]]
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Operand | None, ...]
    native: SizedOperator | None = None


ABSENT = -1
"""Number of an operand, slot or count that there is not."""


class CarriedState(NamedTuple):
    """Value that an iteration hands to the next one.

    Its bytes alternate between those of the result and `spare` ones at an offset in the scratch. If
    no operand is its result, that many aligned bytes behind the spare ones are. Without spare ones
    it is updated in place, in the bytes of the result.

    Attributes:
        input: Slot that the body reads.
        output: Slot that the body writes.
        initial: Operand of the first iteration.
        result: Operand of the last one, or ABSENT.
        spare: Offset in the scratch, or ABSENT.
        size_bytes: Bytes of the value.
    """

    input: int
    output: int
    initial: int
    result: int
    spare: int
    size_bytes: int


class Slices(NamedTuple):
    """Parts of an operand, of which each iteration reads or writes one.

    Attributes:
        slot: Slot of the body.
        operand: Operand that has the parts.
        rows: Rows of a part, which lie `stride` bytes apart.
        row_bytes: Bytes of a row.
        stride: Bytes from a row to the next one.
        first: Byte of the operand at which the first iteration's part begins.
        step: Bytes from there to the next iteration's part.
        dense: Offset in the scratch of a part without gaps, used where there are several rows.
    """

    slot: int
    operand: int
    rows: int
    row_bytes: int
    stride: int
    first: int
    step: int
    dense: int


class KeptValue(NamedTuple):
    """Operand that a loop returns as it is: its source, its result, and their bytes."""

    source: int
    result: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Iterations:
    """Rules by which a body runs, and what each run reads and writes; of a choice only `condition`.

    Attributes:
        states: Values that an iteration hands to the next one.
        read: Parts of operands that an iteration reads.
        written: Parts of operands that an iteration writes.
        kept: Operands that are returned as they are.
        most: Iterations at most, or ABSENT.
        count: Operand, an int64, of the iterations at most, or ABSENT.
        condition: Operand: whether to begin, or which body to run; ABSENT to begin always.
        number_slot: Slot of the body for the iteration's number, or ABSENT.
        goes_on_slot: Slot of the body for whether it goes on, which it does, or ABSENT.
        next_slot: Slot of the body for whether there is another iteration, or ABSENT.
        numbers: Offset in the scratch of the values of these three slots.
        obeys: Whether the value in `next_slot` can end the loop.
    """

    states: tuple[CarriedState, ...] = ()
    read: tuple[Slices, ...] = ()
    written: tuple[Slices, ...] = ()
    kept: tuple[KeptValue, ...] = ()
    most: int = ABSENT
    count: int = ABSENT
    condition: int = ABSENT
    number_slot: int = ABSENT
    goes_on_slot: int = ABSENT
    next_slot: int = ABSENT
    numbers: int = 0
    obeys: bool = False

    def row(self) -> tuple[object, ...]:
        """Return the fields in order."""
        return (
            self.states, self.read, self.written, self.kept, self.most, self.count, self.condition,
            self.number_slot, self.goes_on_slot, self.next_slot, self.numbers, self.obeys,
        )  # fmt: skip


class Body(NamedTuple):
    """Program of a body, placed at the beginning of its step's scratch.

    `bound` lists external slots with the operands of the step that they are in every iteration.
    """

    lowered: "Lowered"
    plan: "SchedulePlan"
    bound: tuple[tuple[int, int], ...]


class ControlWork(NamedTuple):
    """Control flow that the native core runs: one body of a loop, or two of which it takes one.

    The second body is for a true condition. Operands count from the outputs on, inputs follow them,
    and after these comes the scratch.
    """

    bodies: tuple[Body, ...]
    iterations: Iterations
    outputs: tuple[Operand, ...]
    inputs: tuple[Operand, ...]


class CompiledWork:
    """Work that a native program has taken over; the library's description of it is gone."""

    __slots__ = ()


COMPILED = CompiledWork()


NATIVE_WORK = PrimitiveWork | NativeWork | ControlWork
"""Work of steps that run without Python."""

Work = NATIVE_WORK | KernelWork | ReferenceWork | CompiledWork


class Sharing(NamedTuple):
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


class Lowered(NamedTuple):
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

    def all_steps(self) -> Iterator[LoweredStep]:
        """Yield the steps, and after a step of control flow those of its bodies."""
        for step in self.steps:
            yield step
            if isinstance(step.work, ControlWork):
                for body in step.work.bodies:
                    yield from body.lowered.all_steps()
