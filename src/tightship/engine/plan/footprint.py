"""Estimates a loaded model's memory besides tensors: libraries, generated code, its program.

Two figures limit a process: resident memory, and memory reserved for writing, which a limit on data
(RLIMIT_DATA) counts. The runtime is the larger of the two, so that a plan holds both. They are
close: of the 256 KiB that the bundled oneDNN reserves for each kernel, only the pages that it fills
count as data (`native/omp/code.hpp`); of another libdnnl all of them do. Coefficients were measured
on Linux x86-64 and rounded up.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tightship.engine.library import seals_code
from tightship.engine.program.program import (
    ControlWork,
    Lowered,
    NativeWork,
    PackedWeight,
    PrimitiveWork,
    ReferenceWork,
    Space,
)
from tightship.graph import element_count, size_bytes

if TYPE_CHECKING:
    from tightship.graph import Constant, Graph

MIB = 1 << 20
SRC, WEIGHTS, DST = 1, 33, 17
FRONTEND_BYTES = 103 * MIB // 4
"""Modules of onnx, lowering and planning without code pages; compiling them fits in freed heap."""
STORED_BYTES = 4 * MIB
"""Modules that read a prepared model, without the pages of its weights."""
TAKEN_OVER_BYTES = 3 * MIB
"""Likewise, of a program that another process hands over."""
TAKEN_OVER_HEAP_BYTES = 5 * MIB
"""Part of these that counts as data, before any code is generated."""
TAKEN_OVER_STEP_BYTES, TAKEN_OVER_NATIVE_BYTES, WEIGHT_BYTES = 24 << 10, 4 << 10, 6 << 10
"""Records of a step and pages that its kernel touches, of one whose kernel is the core's own, and
records of a weight, of a program that is handed over: least upper bounds of 45 programs with AVX2,
AVX-512 and AMX, rounded up."""
OPENING_BYTES = 31 * MIB // 2
"""Pages that opening libdnnl touches, most of which are given back before anything is loaded."""
PYTHON_BYTES = 38 * MIB
"""Python, NumPy and this package in a process that plans for another one."""
PYTHON_OWN_BYTES = 15 * MIB
"""Part of these that is not pages of files which the other process has in memory as well."""
WAITING_BYTES = 6 * MIB
"""Memory that a process gains while another one plans for it."""
ONEDNN_BYTES = 6 * MIB
"""Pages of libdnnl that running touches; those touched by opening and choosing are given back."""
NATIVE_BYTES = 4 * MIB
"""Pages of the core's own kernels in a program that has no others."""
COMPILING_BYTES, IMPLEMENTATION_BYTES = 3 * MIB // 2, MIB // 2
"""Further pages of libdnnl that compiling touches: once, and for each implementation."""
REFERENCE_BYTES = 12 * MIB
"""Modules of onnx.reference and its operators."""
NODE_BYTES = 7 << 10
"""Records, types and names of one node of the file."""
NODES_AS_ONE = 2
"""Nodes that count as one where shapes determine their results: these are not typed."""
STEP_BYTES, NATIVE_STEP_BYTES = 12 << 10, 7 << 10
"""Operands and description of one step, and of one whose kernel is the core's own."""
THREAD_BYTES = MIB
"""Touched stack of a further thread of the OpenMP runtime."""
CONVERTED_PIECES = 6
"""Bytes held while a constant is made row by row: a piece of its file, and what it becomes."""
STACK_BYTES = 8 * MIB
"""Stack that a thread of another OpenMP runtime reserves, by the usual limit."""
HEAP_BYTES = 21 * MIB
"""Part of these that counts as data before any code is generated."""
FURTHER_STEP_BYTES, FURTHER_NATIVE_STEP_BYTES, FURTHER_BYTES = 5 << 10, 3 << 10, 512 << 10
"""Likewise of a program beside another of the same steps, and bytes of all else of it."""
SESSION_MODULES_BYTES = 11 * MIB // 4
"""Modules and records of sessions, measured with programs of one token alone in a built wheel: it
has 2 MiB more in memory than an editable build."""
BLAS_BYTES = 32 * MIB
"""Buffer that NumPy's BLAS reserves at its first product, and touches in part."""
BLAS_KERNELS = frozenset(
    f"numpy:{operator}"
    for operator in ("Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN")
)
"""Implementations that call the BLAS."""
CODE_BYTES = {
    "brg": 32 << 10,
    "brg_conv": 32 << 10,
    "brgemm": 32 << 10,
    "brgconv": 64 << 10,
    "brgconv_1x1": 16 << 10,
    "jit_1x1": 24 << 10,
    "jit_int8": 40 << 10,
}
"""Average bytes that an implementation's kernels fill; `OTHER_CODE_BYTES` for others."""
OTHER_CODE_BYTES = 8 << 10
AMX_CODE_BYTES = {"brg": 80 << 10}
"""Likewise of those that use tiles, where they differ."""
COLUMN_BYTES = 1400
"""Code bytes of a convolution for each column of its result, whose rows a kernel takes whole."""
KERNEL_BYTES = 256 << 10
"""Bytes that oneDNN reserves for a generated kernel."""
KERNELS = {"brgconv": 5.0, "brg": 4.5, "brgemm": 4.5}
"""Average number of generated kernels of an implementation; 1 for others."""
UNGENERATED = frozenset({"simple", "ref", "ncsp_bnorm", "nspc_bnorm", "lrn_jit"})
"""Implementations that generate no code, or next to none."""
MANY_PIXELS, MANY_CHANNELS = 28 * 28, 1024
"""Sizes from which a 1x1 convolution is cut into unequal parts with a kernel each."""


def counted_nodes(graph: "Graph") -> int:
    """Count the nodes of a graph as it was read, for `runtime_bytes`."""
    return counted(*node_kinds(graph))


def node_kinds(graph: "Graph") -> tuple[int, int]:
    """Count the nodes whose results depend on data, and those that shapes determine.

    Nodes with one record of attributes are copies of each other, as of equal layers that were read
    once. They count once: what a copy takes is counted with its steps.
    """
    nodes = {id(node.attributes): node for node in graph.nodes}.values()
    known = sum(bool(n.writes) and all(w in graph.known for w in n.writes) for n in nodes)
    return len(nodes) - known, known


def counted(others: int, known: int) -> int:
    """Return the nodes that the two kinds of `node_kinds` count as."""
    return others + -(-known // NODES_AS_ONE)


def runtime_bytes(lowered: Lowered, node_count: int) -> int:
    """Estimate the runtime bytes of a lowered model of `node_count` nodes before it is loaded."""
    work = [step.work for step in lowered.all_steps() if isinstance(step.work, PrimitiveWork)]
    program = node_count * NODE_BYTES + steps_bytes(lowered)
    code = _code_bytes(work)
    if any(isinstance(step.work, ReferenceWork) for step in lowered.steps):
        program += REFERENCE_BYTES
    kernels = ONEDNN_BYTES if work else NATIVE_BYTES if lowered.steps else 0
    resident = FRONTEND_BYTES + program + code + kernels
    generated = _reserved_bytes(work) + _reordering_bytes(lowered)
    reserved = HEAP_BYTES + program + generated + _blas_bytes(lowered)
    return max(resident, reserved) + _thread_bytes(lowered) + _beyond_arena(lowered)


def stored_runtime_bytes(lowered: Lowered) -> int:
    """Estimate the runtime bytes of a prepared program, which reads no nodes and packs nothing.

    Its steps count in full, so that a process that prepares the file first fits as well.
    """
    work = [step.work for step in lowered.all_steps() if isinstance(step.work, PrimitiveWork)]
    program = _step_count(lowered) * STEP_BYTES
    reserved = HEAP_BYTES + program + _reserved_bytes(work) + _blas_bytes(lowered)
    return max(stored_resident_bytes(lowered), reserved + _thread_bytes(lowered))


def stored_resident_bytes(lowered: Lowered) -> int:
    """Estimate the resident part of the runtime of a prepared program, without idle reservations.

    Bookings count resident memory; a limit on data counts reservations as well.
    """
    work = [step.work for step in lowered.all_steps() if isinstance(step.work, PrimitiveWork)]
    resident = STORED_BYTES + _step_count(lowered) * STEP_BYTES + _code_bytes(work)
    resident += ONEDNN_BYTES + _compiling_bytes(lowered) if work else 0
    return resident + _thread_bytes(lowered)


def taken_over_runtime_bytes(lowered: Lowered) -> int:
    """Estimate the runtime bytes of a process that takes over what another planned and packed."""
    work = [step.work for step in lowered.all_steps() if isinstance(step.work, PrimitiveWork)]
    program = _records_bytes(lowered)
    kernels = ONEDNN_BYTES if work else NATIVE_BYTES if lowered.steps else 0
    resident = TAKEN_OVER_BYTES + program + _code_bytes(work) + kernels
    reserved = TAKEN_OVER_HEAP_BYTES + program + _reserved_bytes(work) + _blas_bytes(lowered)
    beyond = max(0, _compiling_bytes(lowered) - _idle_bytes(lowered))
    return max(resident, reserved) + _thread_bytes(lowered) + beyond


def planning_bytes(lowered: Lowered, node_count: int) -> int:
    """Estimate what a process takes, besides Python and weights, that plans for another one."""
    work = [step.work for step in lowered.all_steps() if isinstance(step.work, PrimitiveWork)]
    program = node_count * NODE_BYTES + _records_bytes(lowered) + _code_bytes(work)
    loading = ONEDNN_BYTES + _compiling_bytes(lowered) + _packing_bytes(lowered.weights)
    return FRONTEND_BYTES + program + loading


def _records_bytes(lowered: Lowered) -> int:
    steps = _bytes_of_steps(lowered, TAKEN_OVER_STEP_BYTES, TAKEN_OVER_NATIVE_BYTES)
    return steps + len(lowered.weights) * WEIGHT_BYTES


def _thread_bytes(lowered: Lowered) -> int:
    has_others = any(isinstance(step.work, PrimitiveWork) for step in lowered.all_steps())
    stack = STACK_BYTES if has_others and not seals_code() else 0
    return (max(lowered.threads, lowered.workers) - 1) * (THREAD_BYTES + stack)


def calls_blas(lowered: Lowered) -> bool:
    """Return whether a step computes products by NumPy's BLAS."""
    return any(
        step.implementation in BLAS_KERNELS
        or (isinstance(step.work, ReferenceWork) and f"numpy:{step.operator}" in BLAS_KERNELS)
        for step in lowered.steps
    )


def _blas_bytes(lowered: Lowered) -> int:
    return BLAS_BYTES if calls_blas(lowered) else 0


def program_bytes(lowered: Lowered, *, is_stored: bool = False) -> int:
    """Estimate the bytes of a further program of a loaded model: steps and code.

    The steps of stored programs count in full, as by `stored_runtime_bytes`.
    """
    steps = _step_count(lowered) * STEP_BYTES if is_stored else steps_bytes(lowered)
    return steps + sum(code_bytes(lowered).values())


def further_bytes(lowered: Lowered, *, is_stored: bool = False) -> int:
    """Estimate the bytes of a program that has the steps of another one for other lengths."""
    native = FURTHER_STEP_BYTES if is_stored else FURTHER_NATIVE_STEP_BYTES
    steps = _bytes_of_steps(lowered, FURTHER_STEP_BYTES, native)
    return FURTHER_BYTES + steps + sum(code_bytes(lowered).values())


def session_bytes(largest: int, further: int, programs: int) -> int:
    """Estimate the bytes of a decoder's sessions besides caches: their modules and programs.

    Args:
        largest: Estimate of the largest program, which is generous for two.
        further: Estimate of each of the others.
        programs: Most programs.
    """
    others = max(programs - 2, 0) * further
    return max(SESSION_MODULES_BYTES + largest, min(programs, 2) * largest + others)


def steps_bytes(lowered: Lowered) -> int:
    """Estimate the bytes of a further program that no other shares: its steps."""
    return _bytes_of_steps(lowered, STEP_BYTES, NATIVE_STEP_BYTES)


def _bytes_of_steps(lowered: Lowered, each: int, native: int) -> int:
    natives = sum(isinstance(step.work, NativeWork) for step in lowered.all_steps())
    return natives * native + (_step_count(lowered) - natives) * each


def _step_count(lowered: Lowered) -> int:
    return sum(1 for _ in lowered.all_steps())


def code_bytes(lowered: Lowered) -> dict[int, int]:
    """Estimate the code bytes of each primitive, by the hash of its signature.

    Programs with equal primitives share the code.
    """
    work = [step.work for step in lowered.all_steps() if isinstance(step.work, PrimitiveWork)]
    held = seals_code() if work else True
    return {
        hash(each.desc.signature):
            _filled_bytes(each) if held else int(_kernel_count(each) * KERNEL_BYTES)
        for each in _distinct(work)
    }  # fmt: skip


def _code_bytes(work: Sequence[PrimitiveWork]) -> int:
    """Estimate the bytes of pages that generated code fills."""
    return sum(_filled_bytes(primitive) for primitive in _distinct(work))


def _reserved_bytes(work: Sequence[PrimitiveWork]) -> int:
    """Estimate the bytes that generated code reserves for writing and keeps."""
    if not work or seals_code():
        return _code_bytes(work)
    return int(sum(_kernel_count(primitive) for primitive in _distinct(work)) * KERNEL_BYTES)


def _reordering_bytes(lowered: Lowered) -> int:
    """Estimate the bytes reserved for kernels that pack the weights of native steps.

    Those that pack the weights of primitives are in the averages of `KERNELS`. A weight takes a
    kernel for whole pieces of it and one for the rest.
    """
    if (
        not any(isinstance(step.work, PrimitiveWork) for step in lowered.all_steps())
        or seals_code()
    ):
        return 0
    packed = {
        tuple(operand.shape)
        for step in lowered.steps
        if isinstance(step.work, NativeWork | ControlWork)
        for operand in step.reads
        if operand.space is Space.WEIGHTS and operand.desc and not operand.desc.is_plain
    }
    return 2 * len(packed) * KERNEL_BYTES


def _distinct(work: Sequence[PrimitiveWork]) -> Collection[PrimitiveWork]:
    """Return one primitive of each signature, because equal ones share their code."""
    described = {id(primitive.desc): primitive for primitive in work}.values()
    return {primitive.desc.signature: primitive for primitive in described}.values()


def _filled_bytes(work: PrimitiveWork) -> int:
    family = work.desc.implementation.split(":")[0]
    if family in UNGENERATED:
        return 0
    filled = CODE_BYTES.get(family, OTHER_CODE_BYTES)
    if work.desc.implementation.endswith("amx"):
        filled = AMX_CODE_BYTES.get(family, filled)
    if family == "brgconv":
        filled += work.desc.operand(DST).dims[-1] * COLUMN_BYTES
    return filled if "avx512" in work.desc.implementation else 2 * filled


def _kernel_count(work: PrimitiveWork) -> float:
    """Estimate the kernels of a primitive, as counted with AVX-512; AVX2 takes more."""
    family = work.desc.implementation.split(":")[0]
    if family in UNGENERATED:
        return 0.0
    wide = 1.0 if "avx512" in work.desc.implementation else 2.0
    if family == "brgconv_1x1":
        return wide * _kernels_of_pointwise(work)
    return wide * KERNELS.get(family, 1.0)


def _kernels_of_pointwise(work: PrimitiveWork) -> int:
    """Count one kernel for each combination of whole and remaining pixels, outputs and inputs."""
    source, weights, target = (work.desc.operand(argument) for argument in (SRC, WEIGHTS, DST))
    outputs_left = target.dims[1] % max(weights.blocks) != 0
    return (
        (2 if outputs_left else 1)
        * (2 if element_count(target.dims[2:]) >= MANY_PIXELS else 1)
        * (8 if source.dims[1] > MANY_CHANNELS else 1)
    )


def _beyond_arena(lowered: Lowered) -> int:
    """Estimate what loading takes in excess of the arena, which it does not touch yet.

    Arena, inputs and outputs are untouched while weights are packed and primitives compiled. An
    arena holds at least the largest slot.
    """
    loading = max(_packing_bytes(lowered.weights), _compiling_bytes(lowered))
    return max(0, loading - _idle_bytes(lowered))


def _idle_bytes(lowered: Lowered) -> int:
    largest = max((slot.size_bytes for slot in lowered.slots if not slot.external), default=0)
    return largest + sum(slot.size_bytes for slot in lowered.slots if slot.external)


def _compiling_bytes(lowered: Lowered) -> int:
    kinds = {s.implementation for s in lowered.all_steps() if isinstance(s.work, PrimitiveWork)}
    return COMPILING_BYTES + len(kinds) * IMPLEMENTATION_BYTES if kinds else 0


def _packing_bytes(weights: Sequence[PackedWeight]) -> int:
    from tightship.engine.weights.pack import staging_bytes  # a prepared model has nothing to pack

    computed = max((_transient_bytes(weight) for weight in weights), default=0)
    derived = (weight.constant for weight in weights if _transient_bytes(weight))
    return staging_bytes(weights) + computed + max(map(_source_bytes, derived), default=0)


def _transient_bytes(weight: PackedWeight) -> int:
    """Estimate bytes held to compute a constant that cannot be read in pieces."""
    from tightship.graph import Derived
    from tightship.graph.row_by_row import PIECE_BYTES, RowByRow

    constant = weight.constant
    if isinstance(constant, RowByRow):
        return CONVERTED_PIECES * PIECE_BYTES
    if not isinstance(constant, Derived):
        return 0
    return constant.transient_bytes + size_bytes(constant.dtype, constant.shape)


def _source_bytes(constant: "Constant") -> int:
    """Bytes that are read of a file at once where a constant is computed, or mapped around them."""
    from tightship.graph import Derived, Mapped
    from tightship.graph.constant import READ_BYTES_MAX

    if isinstance(constant, Mapped):
        return min(size_bytes(constant.dtype, constant.shape), READ_BYTES_MAX)
    sources = constant.sources if isinstance(constant, Derived) else ()
    return max(map(_source_bytes, sources), default=0)
