"""What a loaded model takes besides tensors: libraries, generated code, the program itself.

Two things limit a process: what is resident, and what it has reserved for writing (a limit on
data, RLIMIT_DATA, counts that). oneDNN reserves 256 KiB for each kernel it generates and
touches a few; the libraries' code is resident and was never reserved for writing. The runtime
is the larger of the two, measured on Linux x86-64 and rounded up.
"""

from collections.abc import Sequence

from tightship.engine.program import Lowered, PackedWeight, PrimitiveWork, ReferenceWork
from tightship.graph import element_count, size_bytes

MIB = 1 << 20
SRC, WEIGHTS, DST = 1, 33, 17
FRONTEND_BYTES = 21 * MIB
"""onnx and what lowers and plans, imported, without the pages of their code; where they are
compiled first, they take less than was free by then."""
STORED_BYTES = 4 * MIB
"""What reads a prepared model, without the pages of its weights."""
ONEDNN_BYTES = 6 * MIB
"""Pages of libdnnl that running touches; what opening it and choosing touched is dropped."""
COMPILING_BYTES = 4 * MIB
"""Further pages of it that compiling touches, before anything of an arena is."""
REFERENCE_BYTES = 12 * MIB
"""onnx.reference and its operators."""
NODE_BYTES = 12 << 10
"""A node of the file: its records, types and names."""
STEP_BYTES = 16 << 10
"""A step: its operands, its description and its generated code as far as it is touched."""
THREAD_BYTES = MIB
"""A further thread of the OpenMP runtime: its stack as far as it is touched."""
HEAP_BYTES = 18 * MIB
"""Of all that, what counts as data before any code is generated."""
BLAS_BYTES = 32 * MIB
"""A buffer that the BLAS of NumPy reserves at its first product, and touches in part."""
BLAS_KERNELS = frozenset(
    f"numpy:{operator}"
    for operator in ("Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN")
)
"""Implementations that call it."""
CODE_BYTES = 256 << 10
"""What oneDNN reserves for a generated kernel."""
KERNELS = {"brgconv": 4.5, "brg": 4.0}
"""Generated kernels of an implementation, on average; 1 where it is not named."""
UNGENERATED = frozenset({"simple", "ref", "ncsp_bnorm", "nspc_bnorm", "lrn_jit"})
"""Implementations that generate (next to) none."""
MANY_PIXELS, MANY_CHANNELS = 28 * 28, 1024
"""From where on a 1x1 convolution is cut into unequal parts, each with kernels of its own."""


def runtime_bytes(lowered: Lowered, node_count: int) -> int:
    """Bytes of the runtime of a lowered model of `node_count` nodes, before it is loaded."""
    work = [step.work for step in lowered.steps if isinstance(step.work, PrimitiveWork)]
    program = node_count * NODE_BYTES + len(lowered.steps) * STEP_BYTES
    if any(isinstance(step.work, ReferenceWork) for step in lowered.steps):
        program += REFERENCE_BYTES
    resident = FRONTEND_BYTES + program + (ONEDNN_BYTES if work else 0)
    reserved = HEAP_BYTES + program + _code_bytes(work) + _blas_bytes(lowered)
    threads = (lowered.threads - 1) * THREAD_BYTES
    return max(resident, reserved) + threads + _beyond_arena(lowered)


def stored_runtime_bytes(lowered: Lowered) -> int:
    """As `runtime_bytes`, of a program in a prepared model: no nodes are read, nothing packed."""
    work = [step.work for step in lowered.steps if isinstance(step.work, PrimitiveWork)]
    program = len(lowered.steps) * STEP_BYTES
    resident = STORED_BYTES + program + (ONEDNN_BYTES + COMPILING_BYTES if work else 0)
    reserved = HEAP_BYTES + program + _code_bytes(work) + _blas_bytes(lowered)
    return max(resident, reserved) + (lowered.threads - 1) * THREAD_BYTES


def _blas_bytes(lowered: Lowered) -> int:
    calls = any(step.implementation in BLAS_KERNELS for step in lowered.steps)
    return BLAS_BYTES if calls else 0


def program_bytes(lowered: Lowered) -> int:
    """Bytes of a further program beside the one that a model was loaded with: steps and code."""
    work = [step.work for step in lowered.steps if isinstance(step.work, PrimitiveWork)]
    return len(lowered.steps) * STEP_BYTES + _code_bytes(work)


def _code_bytes(work: Sequence[PrimitiveWork]) -> int:
    """What generated code reserves; primitives that are alike share theirs."""
    described = {id(primitive.desc): primitive for primitive in work}.values()
    distinct = {primitive.desc.signature: primitive for primitive in described}
    return int(sum(_kernel_count(primitive) for primitive in distinct.values()) * CODE_BYTES)


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
    compiles = any(isinstance(step.work, PrimitiveWork) for step in lowered.steps)
    loading = max(_packing_bytes(lowered.weights), COMPILING_BYTES if compiles else 0)
    largest = max((slot.size_bytes for slot in lowered.slots if not slot.external), default=0)
    idle = largest + sum(slot.size_bytes for slot in lowered.slots if slot.external)
    return max(0, loading - idle)


def _packing_bytes(weights: Sequence[PackedWeight]) -> int:
    from tightship.engine.pack import staging_bytes  # a prepared model has nothing to pack

    computed = max((_transient_bytes(weight) for weight in weights), default=0)
    return staging_bytes(weights) + computed


def _transient_bytes(weight: PackedWeight) -> int:
    """What computing a constant holds, if it cannot be had piece by piece."""
    from tightship.graph import Derived

    constant = weight.constant
    if not isinstance(constant, Derived):
        return 0
    return constant.transient_bytes + size_bytes(constant.dtype, constant.shape)
