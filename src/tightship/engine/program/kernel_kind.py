"""Kinds of kernels, named after the code that computes a step."""

from typing import Literal

KernelKind = Literal["onednn", "native", "numpy", "reference"]
