"""What a loaded model takes besides tensors: libraries, generated code, the program itself.

Two figures limit a process: what is resident, and what it has reserved for writing (a limit on
data, RLIMIT_DATA, counts that). The runtime is the larger of the two, so that a plan holds both.
They are near each other: of the 256 KiB that the bundled oneDNN reserves for each kernel, only the
pages that it fills count as data (`native/omp/code.hpp`). Another libdnnl's count whole.
Coefficients were measured on Linux x86-64 and rounded up.
"""

from collections.abc import Collection, Sequence

from tightship.engine.library import seals_code
from tightship.engine.program.program import Lowered, PackedWeight, PrimitiveWork, ReferenceWork
from tightship.graph import element_count, size_bytes

MIB = 1 << 20
SRC, WEIGHTS, DST = 1, 33, 17
FRONTEND_BYTES = 45 * MIB // 2
"""onnx and what lowers and plans, imported, without the pages of their code; where they are
compiled first, they take less than was free by then."""
STORED_BYTES = 4 * MIB
"""What reads a prepared model, without the pages of its weights."""
ONEDNN_BYTES = 6 * MIB
"""Pages of libdnnl that running touches; what opening it and choosing touched is dropped."""
COMPILING_BYTES, IMPLEMENTATION_BYTES = 3 * MIB // 2, MIB // 2
"""Further pages of it that compiling touches, before anything of an arena is: once, and for each
implementation."""
REFERENCE_BYTES = 12 * MIB
"""onnx.reference and its operators."""
NODE_BYTES = 9 << 10
"""A node of the file: its records, types and names."""
STEP_BYTES = 12 << 10
"""A step: its operands and its description."""
THREAD_BYTES = MIB
"""A further thread of the OpenMP runtime: its stack as far as it is touched."""
STACK_BYTES = 8 * MIB
"""What a thread of another OpenMP runtime reserves, by the usual limit on stacks."""
HEAP_BYTES = 21 * MIB
"""Of all that, what counts as data before any code is generated."""
BLAS_BYTES = 32 * MIB
"""A buffer that the BLAS of NumPy reserves at its first product, and touches in part."""
BLAS_KERNELS = frozenset(
    f"numpy:{operator}"
    for operator in ("Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN")
)
"""Implementations that call it."""
CODE_BYTES = {
    "brg": 32 << 10,
    "brg_conv": 32 << 10,
    "brgconv": 64 << 10,
    "brgconv_1x1": 16 << 10,
    "jit_1x1": 24 << 10,
    "jit_int8": 40 << 10,
}
"""Pages that the kernels of an implementation fill, on average; `OTHER_CODE_BYTES` where it is not
named."""
OTHER_CODE_BYTES = 8 << 10
COLUMN_BYTES = 800
"""Code of a convolution for each column of its result, whose rows a kernel takes whole."""
KERNEL_BYTES = 256 << 10
"""What oneDNN reserves for a generated kernel."""
KERNELS = {"brgconv": 5.0, "brg": 4.5}
"""Generated kernels of an implementation, on average; 1 where it is not named."""
UNGENERATED = frozenset({"simple", "ref", "ncsp_bnorm", "nspc_bnorm", "lrn_jit"})
"""Implementations that generate (next to) none."""
MANY_PIXELS, MANY_CHANNELS = 28 * 28, 1024
"""From where on a 1x1 convolution is cut into unequal parts, each with kernels of its own."""


def runtime_bytes(lowered: Lowered, node_count: int) -> int:
    """Bytes of the runtime of a lowered model of `node_count` nodes, before it is loaded."""
    work = [step.work for step in lowered.steps if isinstance(step.work, PrimitiveWork)]
    program = node_count * NODE_BYTES + len(lowered.steps) * STEP_BYTES
    code = _code_bytes(work)
    if any(isinstance(step.work, ReferenceWork) for step in lowered.steps):
        program += REFERENCE_BYTES
    resident = FRONTEND_BYTES + program + code + (ONEDNN_BYTES if work else 0)
    reserved = HEAP_BYTES + program + _reserved_bytes(work) + _blas_bytes(lowered)
    return max(resident, reserved) + _thread_bytes(lowered) + _beyond_arena(lowered)


def stored_runtime_bytes(lowered: Lowered) -> int:
    """As `runtime_bytes`, of a program in a prepared model: no nodes are read, nothing packed."""
    work = [step.work for step in lowered.steps if isinstance(step.work, PrimitiveWork)]
    program = len(lowered.steps) * STEP_BYTES
    resident = STORED_BYTES + program + _code_bytes(work)
    resident += ONEDNN_BYTES + _compiling_bytes(lowered) if work else 0
    reserved = HEAP_BYTES + program + _reserved_bytes(work) + _blas_bytes(lowered)
    return max(resident, reserved) + _thread_bytes(lowered)


def _thread_bytes(lowered: Lowered) -> int:
    has_others = any(isinstance(step.work, PrimitiveWork) for step in lowered.steps)
    stack = STACK_BYTES if has_others and not seals_code() else 0
    return (lowered.threads - 1) * (THREAD_BYTES + stack)


def _blas_bytes(lowered: Lowered) -> int:
    calls = any(step.implementation in BLAS_KERNELS for step in lowered.steps)
    return BLAS_BYTES if calls else 0


def program_bytes(lowered: Lowered) -> int:
    """Bytes of a further program beside the one that a model was loaded with: steps and code."""
    return steps_bytes(lowered) + sum(code_bytes(lowered).values())


def steps_bytes(lowered: Lowered) -> int:
    """Bytes of a further program that no other shares: its steps."""
    return len(lowered.steps) * STEP_BYTES


def code_bytes(lowered: Lowered) -> dict[int, int]:
    """Bytes of the code of each primitive, by the hash of its signature.

    Programs with equal primitives share the code.
    """
    work = [step.work for step in lowered.steps if isinstance(step.work, PrimitiveWork)]
    held = seals_code() if work else True
    return {
        hash(each.desc.signature):
            _filled_bytes(each) if held else int(_kernel_count(each) * KERNEL_BYTES)
        for each in _distinct(work)
    }  # fmt: skip


def _code_bytes(work: Sequence[PrimitiveWork]) -> int:
    """Pages that generated code fills."""
    return sum(_filled_bytes(primitive) for primitive in _distinct(work))


def _reserved_bytes(work: Sequence[PrimitiveWork]) -> int:
    """What generated code reserves for writing, and keeps."""
    if not work or seals_code():
        return _code_bytes(work)
    return int(sum(_kernel_count(primitive) for primitive in _distinct(work)) * KERNEL_BYTES)


def _distinct(work: Sequence[PrimitiveWork]) -> Collection[PrimitiveWork]:
    """One of those that are alike, as they share their code."""
    described = {id(primitive.desc): primitive for primitive in work}.values()
    return {primitive.desc.signature: primitive for primitive in described}.values()


def _filled_bytes(work: PrimitiveWork) -> int:
    family = work.desc.implementation.split(":")[0]
    if family in UNGENERATED:
        return 0
    filled = CODE_BYTES.get(family, OTHER_CODE_BYTES)
    if family == "brgconv":
        filled += work.desc.operand(DST).dims[-1] * COLUMN_BYTES
    return filled if "avx512" in work.desc.implementation else 2 * filled


def _kernel_count(work: PrimitiveWork) -> float:
    """Generated kernels of a primitive, as they were counted with AVX-512; AVX2 takes more."""
    family = work.desc.implementation.split(":")[0]
    if family in UNGENERATED:
        return 0.0
    wide = 1.0 if "avx512" in work.desc.implementation else 2.0
    if family == "brgconv_1x1":
        return wide * _kernels_of_pointwise(work)
    return wide * KERNELS.get(family, 1.0)


def _kernels_of_pointwise(work: PrimitiveWork) -> int:
    """One kernel for each combination of whole and remaining pixels, outputs and inputs."""
    source, weights, target = (work.desc.operand(argument) for argument in (SRC, WEIGHTS, DST))
    outputs_left = target.dims[1] % max(weights.blocks) != 0
    return (
        (2 if outputs_left else 1)
        * (2 if element_count(target.dims[2:]) >= MANY_PIXELS else 1)
        * (8 if source.dims[1] > MANY_CHANNELS else 1)
    )


def _beyond_arena(lowered: Lowered) -> int:
    """What loading takes beside packed weights, where the arena and its like are smaller.

    Nothing has been touched of them while weights are packed and primitives compiled. An arena
    has room for the largest slot.
    """
    loading = max(_packing_bytes(lowered.weights), _compiling_bytes(lowered))
    largest = max((slot.size_bytes for slot in lowered.slots if not slot.external), default=0)
    idle = largest + sum(slot.size_bytes for slot in lowered.slots if slot.external)
    return max(0, loading - idle)


def _compiling_bytes(lowered: Lowered) -> int:
    kinds = {step.implementation for step in lowered.steps if isinstance(step.work, PrimitiveWork)}
    return COMPILING_BYTES + len(kinds) * IMPLEMENTATION_BYTES if kinds else 0


def _packing_bytes(weights: Sequence[PackedWeight]) -> int:
    from tightship.engine.weights.pack import staging_bytes  # a prepared model has nothing to pack

    computed = max((_transient_bytes(weight) for weight in weights), default=0)
    return staging_bytes(weights) + computed


def _transient_bytes(weight: PackedWeight) -> int:
    """What computing a constant holds, if it cannot be had piece by piece."""
    from tightship.graph import Derived

    constant = weight.constant
    if not isinstance(constant, Derived):
        return 0
    return constant.transient_bytes + size_bytes(constant.dtype, constant.shape)
