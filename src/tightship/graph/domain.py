"""Domains of operators that are not ONNX's."""

TRAINING = "tightship.training"
"""Of what gradients are written with (`graph.backward.operators`), and of opaque layers."""
