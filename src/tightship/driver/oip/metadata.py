"""Metadata and configuration of models."""

from collections.abc import Sequence
from typing import Any

from tightship.driver.oip.datatypes import name_of
from tightship.driver.oip.model_config import ANY, VersionPolicy, type_said
from tightship.driver.oip.served_model import ServedModel, Types
from tightship.graph import Shape

PLATFORM = "tightship"


def metadata_of(served: ServedModel, versions: Sequence[str]) -> dict[str, Any]:
    """Return the metadata of a version; variable lengths are -1, and `versions` all served ones."""
    return {
        "name": served.name,
        "versions": list(versions),
        "platform": PLATFORM if served.config is None else served.config.platform or PLATFORM,
        "inputs": _tensors(served.inputs),
        "outputs": _tensors(served.outputs),
    }


def config_of(served: ServedModel) -> dict[str, Any]:
    """Return the configuration of a version in Triton's format, with what its file decides."""
    config = served.config
    if config is None:
        said = {
            "platform": PLATFORM,
            "backend": PLATFORM,
            "version_policy": VersionPolicy().said(),
            "max_batch_size": 0,
        }
    else:
        said = config.said()
    has_batch = bool(said["max_batch_size"])
    return {
        "name": served.name,
        **said,
        "input": _config_tensors(served.inputs, has_batch=has_batch),
        "output": _config_tensors(served.outputs, has_batch=has_batch),
    }


def _lengths(shape: Shape | None) -> list[int]:
    return [ANY] if shape is None else [each if isinstance(each, int) else ANY for each in shape]


def _tensors(types: Types) -> list[dict[str, Any]]:
    return [
        {"name": name, "datatype": name_of(dtype), "shape": _lengths(shape)}
        for name, (dtype, shape) in types.items()
    ]


def _config_tensors(types: Types, *, has_batch: bool) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "data_type": type_said(dtype),
            "dims": _lengths(shape)[1:] if has_batch and shape else _lengths(shape),
        }
        for name, (dtype, shape) in types.items()
    ]
