"""Kinds of kernels, by who computes a step."""

from typing import Literal

KernelKind = Literal["onednn", "native", "numpy", "reference"]
