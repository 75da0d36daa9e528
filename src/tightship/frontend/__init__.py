"""Foreign models as graphs; each frontend imports its framework when it reads."""

PROGRAM_SUFFIX = ".pt2"
"""Of files that `torch.export.save` writes."""
