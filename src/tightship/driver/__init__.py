"""Models and tensors shared between processes, by NNAPI's rules."""

from tightship.driver.client.building import ModelBuilder, channels_type, tensor_type
from tightship.driver.client.client import Client
from tightship.driver.client.compilation_cache import CompilationCache
from tightship.driver.client.fallback import FallbackModel
from tightship.driver.protocol.messages import Image
from tightship.driver.rules.pools import PoolMode
from tightship.driver.rules.status import ErrorStatus, ExecutionPreference, Priority

__all__ = [
    "Client",
    "CompilationCache",
    "ErrorStatus",
    "ExecutionPreference",
    "FallbackModel",
    "Image",
    "ModelBuilder",
    "PoolMode",
    "Priority",
    "channels_type",
    "tensor_type",
]
