"""Emitters of native kernels for nodes that oneDNN has no fast primitive for."""
