"""What a loaded model takes besides tensors: libraries, generated code, the program itself.

Two things limit a process: what is resident, and what it has reserved for writing (a limit on
data, RLIMIT_DATA, counts that). oneDNN reserves 256 KiB for each kernel it generates and
touches a few; the libraries' code is resident and was never reserved for writing. The runtime
is the larger of the two, measured on Linux x86-64 and rounded up.
"""

from collections.abc import Sequence

from tightship.engine.pack import staging_bytes
from tightship.engine.program import Lowered, PackedWeight, PrimitiveWork, ReferenceWork
from tightship.graph import Derived, size_bytes

MIB = 1 << 20
FRONTEND_BYTES = 22 * MIB
"""onnx imported, a file mapped, its protobuf classes loaded."""
ONEDNN_BYTES = 24 * MIB
"""Pages of libdnnl and libgomp that choosing and running kernels touches."""
REFERENCE_BYTES = 12 * MIB
"""onnx.reference and its operators."""
NODE_BYTES = 8 << 10
"""A node of the file: its records, types and names."""
STEP_BYTES = 8 << 10
"""A step: its operands, its description and its generated code as far as it is touched."""
THREAD_BYTES = MIB
"""A further thread of the OpenMP runtime: its stack as far as it is touched."""
HEAP_BYTES = 21 * MIB
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
KERNELS = {"brgconv": 4.5, "brgconv_1x1": 1.25, "brg": 4.0}
"""Generated kernels of an implementation, on average; 1 where it is not named."""
UNGENERATED = frozenset({"simple", "ref", "ncsp_bnorm", "nspc_bnorm", "lrn_jit"})
"""Implementations that generate (next to) none."""


def runtime_bytes(lowered: Lowered, node_count: int) -> int:
    """Bytes of the runtime of a lowered model of `node_count` nodes, before it is loaded."""
    work = [step.work for step in lowered.steps if isinstance(step.work, PrimitiveWork)]
    program = node_count * NODE_BYTES + len(lowered.steps) * STEP_BYTES
    if any(isinstance(step.work, ReferenceWork) for step in lowered.steps):
        program += REFERENCE_BYTES
    resident = FRONTEND_BYTES + program + (ONEDNN_BYTES if work else 0)
    reserved = HEAP_BYTES + program + _code_bytes(work)
    if any(step.implementation in BLAS_KERNELS for step in lowered.steps):
        reserved += BLAS_BYTES
    threads = (lowered.threads - 1) * THREAD_BYTES
    return max(resident, reserved) + threads + _beyond_arena(lowered)


def _code_bytes(work: Sequence[PrimitiveWork]) -> int:
    """What generated code reserves; primitives that are alike share theirs."""
    families = {p.desc.signature: p.desc.implementation.split(":")[0] for p in work}
    kernels = sum(
        0.0 if family in UNGENERATED else KERNELS.get(family, 1.0) for family in families.values()
    )
    return int(kernels * CODE_BYTES)


def _beyond_arena(lowered: Lowered) -> int:
    """What packing takes beside packed weights, where the arena and its like are smaller.

    Nothing has been touched of them while weights are packed.
    """
    idle = sum(slot.size_bytes for slot in lowered.slots if slot.external)
    return max(0, _packing_bytes(lowered.weights) - idle)


def _packing_bytes(weights: Sequence[PackedWeight]) -> int:
    computed = max((_transient_bytes(weight) for weight in weights), default=0)
    return staging_bytes(weights) + computed


def _transient_bytes(weight: PackedWeight) -> int:
    """What computing a constant holds, if it cannot be had piece by piece."""
    constant = weight.constant
    if not isinstance(constant, Derived):
        return 0
    return constant.transient_bytes + size_bytes(constant.dtype, constant.shape)
