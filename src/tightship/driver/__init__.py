"""Models and tensors shared between processes, by NNAPI's rules."""

from tightship.driver.client.building import ModelBuilder, tensor_type
from tightship.driver.client.client import Client
from tightship.driver.client.compilation_cache import CompilationCache

__all__ = ["Client", "CompilationCache", "ModelBuilder", "tensor_type"]
