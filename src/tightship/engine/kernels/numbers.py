"""Classifies dtypes by what NumPy computes with them."""

import numpy as np

Type = np.dtype[np.generic]

REAL = frozenset(np.dtype(name) for name in ("float16", "float32", "float64"))


def is_real(dtype: Type) -> bool:
    """Whether it is one of NumPy's own floating-point types."""
    return dtype in REAL


def is_integer(dtype: Type) -> bool:
    """Whether it is an integer of 8 to 64 bits."""
    return dtype.kind in "iu"


def is_number(dtype: Type) -> bool:
    """Whether NumPy computes on it by itself: real or integer."""
    return is_real(dtype) or is_integer(dtype)


def is_brain_float(dtype: Type) -> bool:
    """Whether it is bfloat16, whose loops ml_dtypes adds."""
    return dtype.name == "bfloat16"


def is_narrow_float(dtype: Type) -> bool:
    """Whether it is a float of 8 bits with a sign, an exponent and a mantissa."""
    return dtype.name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


def lowest(dtype: Type) -> float | int:
    """Return a lower bound of all elements: minus infinity, or the smallest integer."""
    if dtype == np.bool_:
        return 0
    return int(np.iinfo(dtype.name).min) if is_integer(dtype) else -np.inf


def highest(dtype: Type) -> float | int:
    """Return an upper bound of all elements: infinity, or the largest integer."""
    if dtype == np.bool_:
        return 1
    return int(np.iinfo(dtype.name).max) if is_integer(dtype) else np.inf


def finite_range(dtype: Type) -> tuple[float, float]:
    """Return the least and the greatest number of a type, integers of 2 and 4 bits included."""
    import ml_dtypes

    info = ml_dtypes.iinfo if "int" in dtype.name else ml_dtypes.finfo
    limits = info(dtype)
    return float(limits.min), float(limits.max)
