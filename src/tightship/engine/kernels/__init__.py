"""Kernels for operators that oneDNN lacks: NumPy in planned buffers, else `onnx.reference`."""

from tightship.engine.kernels.evaluate import evaluate
from tightship.engine.kernels.kernel import Array, Kernel
from tightship.engine.kernels.objects import ObjectKernel, object_kernel
from tightship.engine.kernels.reference import ReferenceRun, reference_kernel
from tightship.engine.kernels.select import numpy_kernel

__all__ = [
    "Array",
    "Kernel",
    "ObjectKernel",
    "ReferenceRun",
    "evaluate",
    "numpy_kernel",
    "object_kernel",
    "reference_kernel",
]
