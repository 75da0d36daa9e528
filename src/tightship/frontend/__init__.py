"""Conversion of foreign models to graphs; each frontend imports its framework on first use."""

PROGRAM_SUFFIX = ".pt2"
"""Suffix of files that `torch.export.save` writes."""
