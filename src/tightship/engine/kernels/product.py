"""Products of matrices by NumPy, with its BLAS or without."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from tightship.engine.kernels.kernel import Array

_uses_blas = ContextVar("uses_blas", default=True)


def product(a: Array, b: Array, out: Array) -> None:
    """Write `a @ b` to `out`, which has its shape."""
    if _uses_blas.get():
        np.matmul(a, b, out=out)
        return
    left, right = ("k" if a.ndim == 1 else "...ik"), ("k" if b.ndim == 1 else "...kj")
    rest = f"...{'i' * (a.ndim > 1)}{'j' * (b.ndim > 1)}"
    np.einsum(f"{left},{right}->{rest}", a, b, out=out, optimize=False)


@contextmanager
def without_blas() -> Iterator[None]:
    """Compute products of this thread without the BLAS, at about a tenth of its speed.

    OpenBLAS reserves 32 MiB at its first product and keeps them, and ends the process if it cannot.
    A constant that is computed once is not worth that.
    """
    token = _uses_blas.set(False)
    try:
        yield
    finally:
        _uses_blas.reset(token)
