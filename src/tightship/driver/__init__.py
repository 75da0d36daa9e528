"""Driver that shares models and tensors between processes by NNAPI's rules, and its client."""

from tightship.driver.client.building import ModelBuilder, channels_type, tensor_type
from tightship.driver.client.client import Client
from tightship.driver.client.compilation_cache import CompilationCache
from tightship.driver.client.fallback import FallbackModel
from tightship.driver.types.pools import Image, PoolMode
from tightship.driver.types.status import ErrorStatus, ExecutionPreference, Priority

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
