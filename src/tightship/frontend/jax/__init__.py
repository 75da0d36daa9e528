"""Functions that jax has traced as graphs; jax itself is imported when the first is read."""

from tightship.frontend.jax.program import JaxProgram, read

__all__ = ["JaxProgram", "read"]
