"""Kernels on arrays whose shapes only the run knows; what they return they allocate.

A maker takes a node and returns a function from its operands, arrays of numbers or None, to its
outputs. It raises `NotCoveredError` for what it leaves to the next tier.
"""
