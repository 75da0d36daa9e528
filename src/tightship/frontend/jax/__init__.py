"""Conversion of functions traced by jax to graphs; jax itself is imported on first use."""

from tightship.frontend.jax.program import JaxProgram, read

__all__ = ["JaxProgram", "read"]
