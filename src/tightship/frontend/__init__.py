"""Conversion of foreign models to graphs; each frontend imports its framework on first use."""

from tightship.late_names import late_names

__getattr__ = late_names(__name__, jax="", onnx="", torch="")

PROGRAM_SUFFIX = ".pt2"
"""Suffix of files that `torch.export.save` writes."""
