"""Driver that shares models and tensors between processes by NNAPI's rules, and its client."""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
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
else:
    # Commands that neither start a driver nor call one import only its options.
    __getattr__ = late_names(
        __name__,
        **{
            "client.blob": "Blob",
            "client.building": "ModelBuilder channels_type tensor_type",
            "client.burst": "Burst",
            "client.client": "Client",
            "client.compilation_cache": "CompilationCache",
            "client.device_buffer": "DeviceBuffer HeldValue PooledBuffer",
            "client.fallback": "REFUSALS FallbackModel",
            "client.fence": "Fence",
            "client.file_pool": "FilePool ImagePool TensorFile",
            "client.model_source": "ModelLike",
            "client.remote": "FencedExecution RemoteModel Reusable",
            "client.segment": "Placed Segment",
            "client.staging": "InBuffer Input Output Results",
            "protocol.replies": "DriverCapabilities ExecutionInfo ModelPrepared Timing",
            "types.attachment": "FenceState",
            "types.dimensions": "Dimensions",
            "types.elements": "dtype_of",
            "types.model": "DataLocation",
            "types.operand_type": "ValueType",
            "types.pools": "Image PoolMode",
            "types.snapshot": "BufferShare Caller Holdings ModelShare PoolShare Snapshot",
            "types.status": "ErrorStatus ExecutionPreference Priority",
        },
    )

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
