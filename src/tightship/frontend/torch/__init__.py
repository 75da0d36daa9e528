"""Conversion of `torch.export` programs and training steps to graphs, with torch on first use."""

from tightship.frontend.torch.program import TorchProgram, open_program, read
from tightship.frontend.torch.training import TrainingGraph, training_graph

__all__ = ["TorchProgram", "TrainingGraph", "open_program", "read", "training_graph"]
