"""Weights in the layouts of their kernels: packed, stored, shared."""
