"""Programs of `torch.export` and training steps as graphs; torch is imported by the first."""

from tightship.frontend.torch.program import TorchProgram, open_program, read
from tightship.frontend.torch.training import TrainingGraph, training_graph

__all__ = ["TorchProgram", "TrainingGraph", "open_program", "read", "training_graph"]
