"""Messages of the gRPC services and of model configurations, created from tables on first use.

A line is a message and its fields: type, name, number. After a type, `*` means a list and `?` a
member of the message's `oneof`; `map:` before it means a map from strings. The messages live in
their own pool, because a process may have other classes for them, as with `tritonclient`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor_pb2 import (  # type: ignore[import-untyped]
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]

from tightship.driver.oip.refusal import OipError

ONE_OF = "parameter_choice"

_INFERENCE = """
ServerLiveRequest
ServerLiveResponse: bool live 1
ServerReadyRequest
ServerReadyResponse: bool ready 1
ModelReadyRequest: string name 1, string version 2
ModelReadyResponse: bool ready 1
ServerMetadataRequest
ServerMetadataResponse: string name 1, string version 2, string* extensions 3
ModelMetadataRequest: string name 1, string version 2
TensorMetadata: string name 1, string datatype 2, int64* shape 3
ModelMetadataResponse: string name 1, string* versions 2, string platform 3, \
TensorMetadata* inputs 4, TensorMetadata* outputs 5

InferParameter: bool? bool_param 1, int64? int64_param 2, string? string_param 3, \
double? double_param 4, uint64? uint64_param 5
InferTensorContents: bool* bool_contents 1, int32* int_contents 2, int64* int64_contents 3, \
uint32* uint_contents 4, uint64* uint64_contents 5, float* fp32_contents 6, \
double* fp64_contents 7, bytes* bytes_contents 8
InferTensor: string name 1, string datatype 2, int64* shape 3, map:InferParameter parameters 4, \
InferTensorContents contents 5
InferRequestedOutputTensor: string name 1, map:InferParameter parameters 2
ModelInferRequest: string model_name 1, string model_version 2, string id 3, \
map:InferParameter parameters 4, InferTensor* inputs 5, InferRequestedOutputTensor* outputs 6, \
bytes* raw_input_contents 7
ModelInferResponse: string model_name 1, string model_version 2, string id 3, \
map:InferParameter parameters 4, InferTensor* outputs 5, bytes* raw_output_contents 6
ModelStreamInferResponse: string error_message 1, ModelInferResponse infer_response 2

ModelConfigRequest: string name 1, string version 2
ModelInput: string name 1, DataType data_type 2, TensorFormat format 3, int64* dims 4
ModelOutput: string name 1, DataType data_type 2, int64* dims 3
VersionLatest: uint32 num_versions 1
VersionAll
VersionSpecific: int64* versions 1
ModelVersionPolicy: VersionLatest? latest 1, VersionAll? all 2, VersionSpecific? specific 3
ModelInstanceGroup: string name 1, int32 count 2, InstanceKind kind 4
ModelDynamicBatching: int32* preferred_batch_size 1, uint64 max_queue_delay_microseconds 2
ModelParameter: string string_value 1
ModelTransactionPolicy: bool decoupled 1
ModelResponseCache: bool enable 1
ModelConfig: string name 1, string platform 2, ModelVersionPolicy version_policy 3, \
int32 max_batch_size 4, ModelInput* input 5, ModelOutput* output 6, \
ModelInstanceGroup* instance_group 7, string default_model_filename 8, \
ModelDynamicBatching? dynamic_batching 11, map:ModelParameter parameters 14, string backend 17, \
ModelTransactionPolicy model_transaction_policy 19, ModelResponseCache response_cache 24
ModelConfigResponse: ModelConfig config 1

ModelStatisticsRequest: string name 1, string version 2
StatisticDuration: uint64 count 1, uint64 ns 2
InferStatistics: StatisticDuration success 1, StatisticDuration fail 2, StatisticDuration queue 3, \
StatisticDuration compute_input 4, StatisticDuration compute_infer 5, \
StatisticDuration compute_output 6, StatisticDuration cache_hit 7, StatisticDuration cache_miss 8
InferBatchStatistics: uint64 batch_size 1
ModelStatistics: string name 1, string version 2, uint64 last_inference 3, \
uint64 inference_count 4, uint64 execution_count 5, InferStatistics inference_stats 6, \
InferBatchStatistics* batch_stats 7
ModelStatisticsResponse: ModelStatistics* model_stats 1

ModelRepositoryParameter: bool? bool_param 1, int64? int64_param 2, string? string_param 3, \
bytes? bytes_param 4
RepositoryIndexRequest: string repository_name 1, bool ready 2
ModelIndex: string name 1, string version 2, string state 3, string reason 4
RepositoryIndexResponse: ModelIndex* models 1
RepositoryModelLoadRequest: string repository_name 1, string model_name 2, \
map:ModelRepositoryParameter parameters 3
RepositoryModelLoadResponse
RepositoryModelUnloadRequest: string repository_name 1, string model_name 2, \
map:ModelRepositoryParameter parameters 3
RepositoryModelUnloadResponse

SystemSharedMemoryStatusRequest: string name 1
SystemRegionStatus: string name 1, string key 2, uint64 offset 3, uint64 byte_size 4
SystemSharedMemoryStatusResponse: map:SystemRegionStatus regions 1
SystemSharedMemoryRegisterRequest: string name 1, string key 2, uint64 offset 3, uint64 byte_size 4
SystemSharedMemoryRegisterResponse
SystemSharedMemoryUnregisterRequest: string name 1
SystemSharedMemoryUnregisterResponse
CudaSharedMemoryStatusRequest: string name 1
CudaRegionStatus: string name 1, uint64 device_id 2, uint64 byte_size 3
CudaSharedMemoryStatusResponse: map:CudaRegionStatus regions 1
CudaSharedMemoryRegisterRequest: string name 1, bytes raw_handle 2, int64 device_id 3, \
uint64 byte_size 4
CudaSharedMemoryRegisterResponse
CudaSharedMemoryUnregisterRequest: string name 1
CudaSharedMemoryUnregisterResponse

TraceSettingValue: string* value 1
TraceSettingRequest: map:TraceSettingValue settings 1, string model_name 2
TraceSettingResponse: map:TraceSettingValue settings 1
LogSettingValue: bool? bool_param 1, uint32? uint32_param 2, string? string_param 3
LogSettingsRequest: map:LogSettingValue settings 1
LogSettingsResponse: map:LogSettingValue settings 1
"""

_HEALTH = """
HealthCheckRequest: string service 1
HealthCheckResponse: ServingStatus status 1
HealthListRequest
HealthListResponse: map:HealthCheckResponse statuses 1
"""

DATA_TYPES = (
    *("INVALID", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32"),
    *("INT64", "FP16", "FP32", "FP64", "STRING", "BF16"),
)


@dataclass(frozen=True, slots=True)
class Schema:
    """Messages of a package.

    Attributes:
        messages: Table of messages.
        enums: Values by the name of their type, in the order of their numbers.
    """

    package: str
    messages: str
    enums: Mapping[str, Sequence[str]]


INFERENCE = Schema(
    "inference",
    _INFERENCE,
    {
        "DataType": [f"TYPE_{each}" for each in DATA_TYPES],
        "TensorFormat": ("FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"),
        "InstanceKind": ("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"),
    },
)
HEALTH = Schema(
    "grpc.health.v1",
    _HEALTH,
    {"ServingStatus": ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")},
)


def message_classes(schema: Schema = INFERENCE) -> Mapping[str, Any]:
    """Create a class for every message, by its name."""
    package = schema.package
    file = FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for kind, values in schema.enums.items():
        enum = file.enum_type.add(name=kind)
        for number, name in enumerate(values):
            enum.value.add(name=name, number=number)
    for line in filter(None, schema.messages.splitlines()):
        name, _, fields = line.partition(": ")
        message = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            _add_field(schema, message, *text.split())
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        each.name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{each.name}"))
        for each in file.message_type
    }


def parsed(kind: Any, data: bytes) -> Any:  # noqa: ANN401
    """Read a message of one of the classes.

    Raises:
        OipError: The bytes are not one.
    """
    try:
        return kind.FromString(data)
    except DecodeError:
        raise OipError("the bytes of the request are not a message") from None


def _add_field(schema: Schema, message: DescriptorProto, kind: str, name: str, number: str) -> None:
    bare = kind.removeprefix("map:").rstrip("*?")
    into = message.field.add(name=name, number=int(number))
    into.label = FieldDescriptorProto.LABEL_OPTIONAL
    if kind.startswith("map:"):
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(schema, entry, "string", "key", "1")
        _add_field(schema, entry, bare, "value", "2")
        bare = f"{message.name}.{entry.name}"
    if kind.startswith("map:") or kind.endswith("*"):
        into.label = FieldDescriptorProto.LABEL_REPEATED
    if kind.endswith("?"):
        if not message.oneof_decl:
            message.oneof_decl.add(name=ONE_OF)
        into.oneof_index = 0
    if bare.islower():
        into.type = FieldDescriptorProto.Type.Value(f"TYPE_{bare.upper()}")
        return
    is_enum = bare in schema.enums
    into.type = FieldDescriptorProto.TYPE_ENUM if is_enum else FieldDescriptorProto.TYPE_MESSAGE
    into.type_name = f".{schema.package}.{bare}"
