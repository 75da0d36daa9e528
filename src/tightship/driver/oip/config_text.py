"""Reading of model configurations: protobuf's text format, and JSON."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from google.protobuf import json_format, text_format  # type: ignore[import-untyped]

from tightship.driver.oip.datatypes import TYPES
from tightship.driver.oip.json_fields import parse
from tightship.driver.oip.model_config import (
    ANY,
    DynamicBatching,
    ModelConfig,
    TensorConfig,
    VersionPolicy,
)
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.schema import message_classes
from tightship.driver.printable import printable
from tightship.errors import InputError
from tightship.graph import DType

TEXT_BYTES_MAX = 1 << 20
"""Largest configuration."""

DELAY_US_MAX = 60_000_000
"""Longest time that a request may be told to wait for others."""

PLATFORMS = ("onnxruntime_onnx", "tightship")
BACKENDS = ("onnxruntime", "tightship")

NOT_SUPPORTED: Mapping[str, Mapping[str, str]] = {
    "ModelConfig": {
        "sequence_batching": "requests of a sequence are not tied to each other",
        "ensemble_scheduling": "models are not chained; compose them into one ONNX file",
        "optimization": "kernels and layouts are chosen when the model is loaded",
        "model_warmup": "a model is ready to run once it is loaded",
        "model_operations": "no libraries are loaded",
        "model_repository_agents": "files are read from the repository alone",
        "model_metrics": "metrics have fixed names",
        "metric_tags": "metrics have fixed labels",
        "batch_input": "inputs come from requests alone",
        "batch_output": "outputs are whole",
        "cc_model_filenames": "there are no GPUs; use `default_model_filename`",
        "runtime": "models run in this process",
    },
    "ModelInput": {
        "reshape": "give the shape that the model has",
        "is_shape_tensor": "ONNX models have none",
        "allow_ragged_batch": "inputs of a batch have one shape",
        "optional": "every input must be given",
        "is_non_linear_format_io": "tensors are linear",
    },
    "ModelOutput": {
        "reshape": "give the shape that the model has",
        "label_filename": "classification is not supported",
        "is_shape_tensor": "ONNX models have none",
        "is_non_linear_format_io": "tensors are linear",
    },
    "ModelInstanceGroup": {
        "gpus": "models run on processors",
        "secondary_devices": "models run on processors",
        "profile": "plans are made from shapes",
        "passive": "every instance runs",
        "rate_limiter": "`--threads` limits the runs of all models",
        "host_policy": "bind the process with `taskset` or a cpuset",
    },
    "ModelDynamicBatching": {
        "preserve_ordering": "each request is answered when its run has ended",
        "priority_levels": "clients and models alternate",
        "default_priority_level": "clients and models alternate",
        "default_queue_policy": "requests have a `timeout` of their own",
        "priority_queue_policy": "clients and models alternate",
    },
}
"""Fields of Triton's messages that are refused, and what is so instead."""

_UNKNOWN = re.compile(r'"inference\.(\w+)" has no field named "([^"]*)"')

Message = Any


def read_text(text: str) -> ModelConfig:
    """Read a configuration in protobuf's text format, such as a `config.pbtxt`.

    Raises:
        InputError: It is not valid, or has a field that is not supported.
    """
    return _read(lambda message: text_format.Parse(text, message))


def read_json(text: str) -> ModelConfig:
    """Read a configuration in JSON, such as that of a `load` call.

    Raises:
        InputError: It is not valid, or has a field that is not supported.
    """
    if len(text) > TEXT_BYTES_MAX:
        raise InputError(f"The configuration has more than {TEXT_BYTES_MAX} characters.")
    try:
        said = parse(text.encode(errors="surrogatepass"))
    except OipError as error:
        raise InputError(f"The configuration is not JSON: {error}") from None
    return _read(lambda message: json_format.ParseDict(said, message))


def _read(fill: Callable[[Message], object]) -> ModelConfig:
    message = _class()()
    try:
        fill(message)
    except (text_format.ParseError, json_format.ParseError) as error:
        raise InputError(_explained(str(error))) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"The configuration cannot be read: {printable(str(error))}") from None
    return _checked(message)


@cache
def _class() -> Message:
    return message_classes()["ModelConfig"]


def _explained(reason: str) -> str:
    found = _UNKNOWN.search(reason)
    if found is None:
        return f"The configuration cannot be read: {printable(reason)}"
    message, field = found.groups()
    instead = NOT_SUPPORTED.get(message, {}).get(field)
    if instead is not None:
        return (
            f"The configuration has `{field}` ({message}), which is not supported: {instead}. "
            "Remove it."
        )
    known = message_classes().get(message)
    names = ", ".join(each.name for each in known.DESCRIPTOR.fields) if known else ""
    return (
        f"The configuration has the unknown field `{printable(field)}` in {message}; its fields "
        f"are {names}."
    )


def _checked(message: Message) -> ModelConfig:
    for key, value, known in (
        ("platform", message.platform, PLATFORMS),
        ("backend", message.backend, BACKENDS),
    ):
        if value and value not in known:
            raise InputError(
                f"`{key}` is `{printable(value)}`, which is not served; it may be "
                f"{', '.join(f'`{each}`' for each in known)}. Export the model to ONNX."
            )
    if message.model_transaction_policy.decoupled:
        raise InputError("`decoupled` is not supported: a request has one response. Remove it.")
    if message.response_cache.enable:
        raise InputError("`response_cache` is not supported: every request is run. Remove it.")
    if message.max_batch_size < 0:
        raise InputError(f"`max_batch_size` is {message.max_batch_size}; it must not be negative.")
    inputs, outputs = _tensors("input", message.input), _tensors("output", message.output)
    return ModelConfig(
        message.name,
        message.platform,
        message.backend,
        _policy(message.version_policy),
        message.max_batch_size,
        inputs,
        outputs,
        _file_name(message.default_model_filename),
        _instances(message.instance_group),
        _batching(message),
        tuple(sorted((key, each.string_value) for key, each in message.parameters.items())),
    )


def _policy(message: Message) -> VersionPolicy:
    choice = message.WhichOneof("parameter_choice")
    if choice == "all":
        return VersionPolicy(0)
    if choice == "specific":
        versions = tuple(sorted(set(message.specific.versions)))
        if not versions or versions[0] < 1:
            raise InputError("`version_policy` must name versions from 1 in `specific`.")
        return VersionPolicy(specific=versions)
    count = message.latest.num_versions if choice == "latest" else 1
    if count < 1:
        raise InputError("`num_versions` of `version_policy` is 0; it must be at least 1.")
    return VersionPolicy(count)


def _tensors(kind: str, messages: Iterable[Message]) -> tuple[TensorConfig, ...]:
    found = tuple(_tensor(kind, each) for each in messages)
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"The configuration has the {kind} `{name}` more than once.")
    return found


def _tensor(kind: str, message: Message) -> TensorConfig:
    name, dims = message.name, tuple(message.dims)
    if not name:
        raise InputError(f"An {kind} of the configuration has no `name`.")
    if any(each < 1 and each != ANY for each in dims):
        raise InputError(
            f"{kind} `{name}` has dims {list(dims)}; each must be at least 1, or -1 for any length."
        )
    return TensorConfig(name, _dtype(message), dims)


def _dtype(message: Message) -> DType | None:
    name = _enum_name(message, "data_type").removeprefix("TYPE_")
    return None if name == "INVALID" else TYPES["BYTES" if name == "STRING" else name]


def _enum_name(message: Message, field: str) -> str:
    """Return the name of an enum's value; a text may have written any number.

    Raises:
        InputError: The number has no name.
    """
    number = getattr(message, field)
    known = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    if number not in known:
        names = ", ".join(each.name for each in known.values())
        raise InputError(f"`{field}` is {number}; it must be one of {names}.")
    return str(known[number].name)


def _file_name(name: str) -> str:
    if name in {".", ".."} or "/" in name or "\0" in name:
        raise InputError(
            f"`default_model_filename` is `{printable(name)}`; it must name a file in the folder "
            "of a version, without `/`."
        )
    return name


def _instances(messages: Iterable[Message]) -> int:
    counts = []
    for each in messages:
        if _enum_name(each, "kind") == "KIND_GPU":
            raise InputError(
                "`instance_group` has KIND_GPU; models run on processors: write KIND_CPU."
            )
        if each.count < 0:
            raise InputError(f"`count` of `instance_group` is {each.count}; it must be at least 1.")
        counts.append(each.count or 1)
    return sum(counts) or 1


def _batching(message: Message) -> DynamicBatching | None:
    if not message.HasField("dynamic_batching"):
        return None
    sizes = tuple(message.dynamic_batching.preferred_batch_size)
    for each in sizes:
        if not 1 <= each <= message.max_batch_size:
            raise InputError(
                f"`preferred_batch_size` has {each}; it must be between 1 and `max_batch_size`, "
                f"which is {message.max_batch_size}."
            )
    delay_us = message.dynamic_batching.max_queue_delay_microseconds
    if delay_us > DELAY_US_MAX:
        raise InputError(
            f"`max_queue_delay_microseconds` is {delay_us}; it must be at most {DELAY_US_MAX}."
        )
    return DynamicBatching(sizes, delay_us)
