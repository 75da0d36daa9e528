"""Metadata and configuration of models."""

from collections.abc import Mapping
from typing import Any

from tightship.driver.oip.datatypes import name_of
from tightship.driver.oip.repository import VERSION
from tightship.graph import DType, Shape
from tightship.model import Model


def metadata_of(name: str, model: Model) -> dict[str, Any]:
    """Return the metadata of a model; variable lengths are -1."""
    return {
        "name": name,
        "versions": [VERSION],
        "platform": "tightship",
        "inputs": _tensors(_inputs(model)),
        "outputs": _tensors(_outputs(model)),
    }


def config_of(name: str, model: Model) -> dict[str, Any]:
    """Return the configuration of a model: its metadata in Triton's configuration format."""
    return {
        "name": name,
        "platform": "tightship",
        "backend": "tightship",
        "version_policy": {"latest": {"num_versions": 1}},
        "max_batch_size": 0,
        "input": _config_tensors(_inputs(model)),
        "output": _config_tensors(_outputs(model)),
    }


Types = Mapping[str, tuple[DType, Shape | None]]


def _inputs(model: Model) -> Types:
    found: dict[str, tuple[DType, Shape | None]] = dict(model.input_types)
    for name, is_open in model.open_lengths.items():
        dtype, shape = found[name]
        assert shape is not None, name
        found[name] = dtype, tuple(map(_unless, is_open, shape))
    return found


def _unless(is_open: object, length: int | str | None) -> int | str | None:
    return None if is_open else length


def _outputs(model: Model) -> Types:
    known = model.known_output_shapes
    return {name: (dtype, known[name]) for name, (dtype, _) in model.output_types.items()}


def _lengths(shape: Shape | None) -> list[int]:
    return [-1] if shape is None else [each if isinstance(each, int) else -1 for each in shape]


def _tensors(types: Types) -> list[dict[str, Any]]:
    return [
        {"name": name, "datatype": name_of(dtype), "shape": _lengths(shape)}
        for name, (dtype, shape) in types.items()
    ]


def _config_tensors(types: Types) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "data_type": "TYPE_STRING" if dtype is DType.STRING else f"TYPE_{name_of(dtype)}",
            "dims": _lengths(shape),
        }
        for name, (dtype, shape) in types.items()
    ]
