"""Driver that shares models and tensors between processes by NNAPI's rules, and its client."""

from tightship.driver.client.blob import Blob
from tightship.driver.client.building import ModelBuilder, channels_type, tensor_type
from tightship.driver.client.burst import Burst
from tightship.driver.client.client import Client
from tightship.driver.client.compilation_cache import CompilationCache
from tightship.driver.client.device_buffer import DeviceBuffer, HeldValue, PooledBuffer
from tightship.driver.client.fallback import REFUSALS, FallbackModel
from tightship.driver.client.fence import Fence
from tightship.driver.client.file_pool import FilePool, ImagePool, TensorFile
from tightship.driver.client.model_source import ModelLike
from tightship.driver.client.remote import FencedExecution, RemoteModel, Reusable
from tightship.driver.client.segment import Placed, Segment
from tightship.driver.client.staging import InBuffer, Input, Output, Results
from tightship.driver.protocol.replies import (
    DriverCapabilities,
    ExecutionInfo,
    ModelPrepared,
    Timing,
)
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.model import DataLocation
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import Image, PoolMode
from tightship.driver.types.snapshot import (
    BufferShare,
    Caller,
    Holdings,
    ModelShare,
    PoolShare,
    Snapshot,
)
from tightship.driver.types.status import ErrorStatus, ExecutionPreference, Priority

__all__ = [
    "REFUSALS",
    "Blob",
    "BufferShare",
    "Burst",
    "Caller",
    "Client",
    "CompilationCache",
    "DataLocation",
    "DeviceBuffer",
    "Dimensions",
    "DriverCapabilities",
    "ErrorStatus",
    "ExecutionInfo",
    "ExecutionPreference",
    "FallbackModel",
    "Fence",
    "FenceState",
    "FencedExecution",
    "FilePool",
    "HeldValue",
    "Holdings",
    "Image",
    "ImagePool",
    "InBuffer",
    "Input",
    "ModelBuilder",
    "ModelLike",
    "ModelPrepared",
    "ModelShare",
    "Output",
    "Placed",
    "PoolMode",
    "PoolShare",
    "PooledBuffer",
    "Priority",
    "RemoteModel",
    "Results",
    "Reusable",
    "Segment",
    "Snapshot",
    "TensorFile",
    "Timing",
    "ValueType",
    "channels_type",
    "dtype_of",
    "tensor_type",
]
