"""Configuration of a model in Triton's format: what a `config.pbtxt` or a `load` call says."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tightship.driver.oip.datatypes import name_of
from tightship.errors import InputError
from tightship.graph import DType

INTRA_OP_THREADS = "intra_op_thread_count"
MAX_MEMORY = "max_memory"
DYNAMIC_MEMORY = "dynamic_memory"
PARAMETERS = (INTRA_OP_THREADS, MAX_MEMORY, DYNAMIC_MEMORY)
"""Keys of `parameters` that change how a model is loaded; others are only reported."""
ANY = -1
"""Length of a dimension that may have any length."""


class ConfigMismatchError(InputError):
    """A configuration does not describe its model."""


@dataclass(frozen=True, slots=True)
class TensorConfig:
    """Input or output as a configuration describes it.

    Attributes:
        dtype: Element type; None if the file decides.
        dims: Lengths without the batch, `ANY` for open ones.
    """

    name: str
    dtype: DType | None
    dims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VersionPolicy:
    """Choice of the versions that are served.

    Attributes:
        latest: Number of the greatest versions; 0 for no limit.
        specific: Versions by name; empty if `latest` decides.
    """

    latest: int = 1
    specific: tuple[int, ...] = ()

    def chosen(self, present: Iterable[int]) -> list[int]:
        """Return the versions to serve of those present, in ascending order.

        Raises:
            InputError: There is none, or a specific one is missing.
        """
        known = sorted(present)
        said = ", ".join(map(str, known)) or "none"
        missing = sorted(set(self.specific) - set(known))
        if missing:
            raise InputError(
                f"`version_policy` names version {missing[0]}; the folder has {said}. Add the "
                "folder of that version, or remove it from the policy."
            )
        if not known:
            raise InputError(
                "At least one version must be available under the version policy; the folder has "
                "none. Add a folder named by a number from 1, such as `1`, with `model.onnx`."
            )
        if self.specific:
            return [each for each in known if each in self.specific]
        return known[-self.latest :]

    def said(self) -> dict[str, Any]:
        """Return the policy in JSON's form."""
        if self.specific:
            return {"specific": {"versions": list(self.specific)}}
        return {"latest": {"num_versions": self.latest}} if self.latest else {"all": {}}


@dataclass(frozen=True, slots=True)
class DynamicBatching:
    """Wishes for requests that are joined."""

    preferred_sizes: tuple[int, ...] = ()
    max_delay_us: int = 0

    def said(self) -> dict[str, Any]:
        """Return the wishes in JSON's form."""
        return {
            "preferred_batch_size": list(self.preferred_sizes),
            "max_queue_delay_microseconds": self.max_delay_us,
        }


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Checked configuration.

    Attributes:
        max_batch_size: Largest batch; 0 if dims are whole shapes.
        inputs, outputs: Tensors; empty if the file decides.
        file_name: File in each version's folder; empty for the usual ones.
        instance_count: Runs at once that the configuration counts on.
        batching: Wishes for requests that are joined; None for no joining.
        parameters: Texts by key.
    """

    name: str = ""
    platform: str = ""
    backend: str = ""
    policy: VersionPolicy = VersionPolicy()
    max_batch_size: int = 0
    inputs: tuple[TensorConfig, ...] = ()
    outputs: tuple[TensorConfig, ...] = ()
    file_name: str = ""
    instance_count: int = 1
    batching: DynamicBatching | None = None
    parameters: tuple[tuple[str, str], ...] = ()

    def full_shape(self, tensor: TensorConfig) -> tuple[int, ...]:
        """Return the lengths of a tensor with its batch, which is open."""
        return (ANY, *tensor.dims) if self.max_batch_size else tensor.dims

    def parameter(self, key: str) -> str | None:
        """Return the text of a parameter; None if it is not given."""
        return dict(self.parameters).get(key)

    @property
    def unused(self) -> tuple[str, ...]:
        """Keys of parameters that are only reported."""
        return tuple(key for key, _ in self.parameters if key not in PARAMETERS)

    def said(self) -> dict[str, Any]:
        """Return the configuration in JSON's form, without its inputs and outputs."""
        batching = {} if self.batching is None else {"dynamic_batching": self.batching.said()}
        return {
            "platform": self.platform or "tightship",
            "backend": self.backend or "tightship",
            "version_policy": self.policy.said(),
            "max_batch_size": self.max_batch_size,
            "instance_group": [{"count": self.instance_count, "kind": "KIND_CPU"}],
            "default_model_filename": self.file_name,
            "parameters": {key: {"string_value": text} for key, text in self.parameters},
            **batching,
        }


Types = Mapping[str, tuple[DType | None, Sequence[object] | None]]
"""Element types and shapes by name; None if unknown. An open length is not a number."""


def check_matches(config: ModelConfig, inputs: Types, outputs: Types) -> None:
    """Check that a configuration describes a model.

    Raises:
        ConfigMismatchError: They differ; the message names every difference.
    """
    found: list[str] = []
    for kind, given, known in (
        ("input", config.inputs, inputs),
        ("output", config.outputs, outputs),
    ):
        names = [each.name for each in given]
        found += [
            f"{kind} `{name}` is not in the model, which has {', '.join(map(_quoted, known))}"
            for name in names
            if name not in known
        ]
        if names and kind == "input":
            found += [
                f"{kind} `{name}` of the model is missing" for name in known if name not in names
            ]
        for each in given:
            if each.name in known:
                found += _differences(config, kind, each, *known[each.name])
        if config.max_batch_size:
            found += [
                f"{kind} `{name}` of the model has {_shape(shape)}: for `max_batch_size` "
                f"{config.max_batch_size} its first dimension must be open"
                for name, (_, shape) in known.items()
                if shape is not None and (not shape or isinstance(shape[0], int))
                if not names or name in names
            ]
    if found:
        raise ConfigMismatchError(f"The configuration differs from the model: {'; '.join(found)}.")


def _differences(
    config: ModelConfig,
    kind: str,
    tensor: TensorConfig,
    dtype: DType | None,
    shape: Sequence[object] | None,
) -> list[str]:
    found = []
    if tensor.dtype is not None and dtype is not None and tensor.dtype is not dtype:
        found.append(
            f"{kind} `{tensor.name}` has data_type {type_said(tensor.dtype)}, in the model "
            f"{type_said(dtype)}"
        )
    wanted = config.full_shape(tensor)
    if shape is not None and not _agree(wanted, shape):
        batch = " after the batch" if config.max_batch_size else ""
        found.append(
            f"{kind} `{tensor.name}` has dims {_shape(tensor.dims)}{batch}, in the model the shape "
            f"{_shape(shape)}"
        )
    return found


def _agree(wanted: Sequence[int], shape: Sequence[object]) -> bool:
    return len(wanted) == len(shape) and all(
        ANY in (one, other) or not isinstance(other, int) or one == other
        for one, other in zip(wanted, shape, strict=True)
    )


def _shape(shape: Sequence[object]) -> str:
    return f"[{', '.join(str(each if isinstance(each, int) else ANY) for each in shape)}]"


def _quoted(name: str) -> str:
    return f"`{name}`"


def type_said(dtype: DType) -> str:
    """Return the name of an element type in a configuration."""
    return "TYPE_STRING" if dtype is DType.STRING else f"TYPE_{name_of(dtype)}"
