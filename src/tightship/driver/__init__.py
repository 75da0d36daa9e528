"""Driver that shares models and tensors between processes by NNAPI's rules, and its client."""

from tightship.driver.client.blob import Blob
from tightship.driver.client.building import ModelBuilder, channels_type, tensor_type
from tightship.driver.client.burst import Burst
from tightship.driver.client.client import Client
from tightship.driver.client.compilation_cache import CompilationCache
from tightship.driver.client.device_buffer import DeviceBuffer
from tightship.driver.client.fallback import REFUSALS, FallbackModel
from tightship.driver.client.fence import Fence
from tightship.driver.client.file_pool import FilePool
from tightship.driver.client.held_value import HeldValue
from tightship.driver.client.image_pool import ImagePool
from tightship.driver.client.pooled_buffer import PooledBuffer
from tightship.driver.client.remote import FencedExecution, RemoteModel, Reusable
from tightship.driver.client.results import Results
from tightship.driver.client.segment import Placed, Segment
from tightship.driver.client.staging import InBuffer
from tightship.driver.client.tensor_file import TensorFile
from tightship.driver.protocol.replies import DriverCapabilities, ExecutionInfo, Timing
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import Image, PoolMode
from tightship.driver.types.snapshot import Holdings, Snapshot
from tightship.driver.types.status import ErrorStatus, ExecutionPreference, Priority

__all__ = [
    "REFUSALS",
    "Blob",
    "Burst",
    "Client",
    "CompilationCache",
    "DeviceBuffer",
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
    "ModelBuilder",
    "Placed",
    "PoolMode",
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
