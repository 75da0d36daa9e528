"""Features of the processor that runs the tests, which kernels and layouts depend on."""

import pytest

from tightship import _core
from tightship.engine.library import open_library
from tightship.engine.lower.steps.layouts import AVX2, AVX512, BFLOAT16

VNNI = 0x40
"""Bit of `onednn_cpu_isa` for sums of four products of bytes that do not saturate."""


def _has(bits: int) -> bool:
    """Whether the library is there and may use instructions."""
    if not _core.HAS_ONEDNN:
        return False
    open_library()
    return _core.onednn_cpu_isa() & bits == bits


HAS_AVX512 = _has(AVX512)
"""Products of computed matrices run on oneDNN; with AVX2 alone they run on NumPy's BLAS."""
HAS_VNNI = _has(AVX512 | VNNI)
"""Convolutions of integers are exact; without it, sums of two products saturate at 16 bits."""
HAS_BFLOAT16 = _has(BFLOAT16)
"""Products of bfloat16 run in half of the time of float32 ones, or less."""
PRODUCT = "onednn" if HAS_AVX512 else "numpy"
"""Tier that runs products of computed matrices; by a constant one oneDNN always does."""
needs_bfloat16 = pytest.mark.skipif(not _has(BFLOAT16), reason="needs products of bfloat16")
needs_avx2 = pytest.mark.skipif(not _has(AVX2), reason="needs AVX2")
needs_avx512 = pytest.mark.skipif(not HAS_AVX512, reason="needs AVX-512")
