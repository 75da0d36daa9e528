"""Symbolic shape rules: shapes of outputs from shapes of inputs, by operator."""
