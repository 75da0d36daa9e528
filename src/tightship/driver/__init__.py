"""Models and tensors shared between processes, by NNAPI's rules."""

from tightship.driver.client.building import ModelBuilder, tensor_type
from tightship.driver.client.client import Client
from tightship.driver.client.compilation_cache import CompilationCache
from tightship.driver.client.fallback import FallbackModel

__all__ = ["Client", "CompilationCache", "FallbackModel", "ModelBuilder", "tensor_type"]
