"""Programs of `torch.export` as graphs; torch itself is imported when the first is read."""

from tightship.frontend.torch.program import TorchProgram, read

__all__ = ["TorchProgram", "read"]
