"""The step that copies a value whole, from or to the caller's memory."""

from tightship._core import NativeKernel
from tightship.engine.program.program import LoweredStep, NativeWork, Operand


def copy_step(name: str, source: Operand, target: Operand) -> LoweredStep:
    """Return a step that copies the bytes of an operand to another of the same size."""
    kernel = NativeKernel.copy(1, [source.size_bytes], [1], [1])
    work = NativeWork(kernel, (source, target))
    return LoweredStep(name, "Copy", "native", "copy", (source,), (target,), work)
