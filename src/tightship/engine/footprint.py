"""What a loaded model takes besides tensors: libraries, generated code, the program itself.

Measured on Linux x86-64 and rounded up, so that a plan made in advance holds.
"""

from tightship.engine.program import Lowered, PrimitiveWork

FRONTEND_BYTES = 30 << 20
ONEDNN_BYTES = 24 << 20
PRIMITIVE_BYTES = 48 << 10
STEP_BYTES = 8 << 10
THREAD_BYTES = 512 << 10


def runtime_bytes(lowered: Lowered) -> int:
    """Bytes of the runtime of a lowered model, before it is loaded."""
    primitives = sum(isinstance(step.work, PrimitiveWork) for step in lowered.steps)
    return (
        FRONTEND_BYTES
        + (ONEDNN_BYTES if primitives else 0)
        + primitives * PRIMITIVE_BYTES
        + len(lowered.steps) * STEP_BYTES
        + (lowered.threads - 1) * THREAD_BYTES
    )
