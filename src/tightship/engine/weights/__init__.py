"""Weights in the layouts that kernels want: packed, stored, shared."""
