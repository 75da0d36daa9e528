"""Logistic function."""

import numpy as np

from tightship.engine.kernels.kernel import Array


def logistic(x: Array, out: Array) -> None:
    """Compute out = 1 / (1 + exp(-x)); both may be one array."""
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)
