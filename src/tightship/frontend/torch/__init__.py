"""Programs of `torch.export` and training steps as graphs; torch is imported by the first."""

from tightship.frontend.torch.program import TorchProgram, read
from tightship.frontend.torch.training import TrainingGraph, training_graph

__all__ = ["TorchProgram", "TrainingGraph", "read", "training_graph"]
