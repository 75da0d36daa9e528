"""Emitters of oneDNN primitives for nodes; the primitives choose their layouts."""
