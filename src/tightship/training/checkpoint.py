"""Saves a trainer's state in a file: weights, the optimizer's tensors, and the progress.

The file has the format `.safetensors`. Weights have their own names. The optimizer's tensors have
the names of torch's optimizers, after `optimizer.state.` and the name of the weight.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tightship.atomic_file import draft
from tightship.errors import FormatError, InputError
from tightship.safetensors import (
    DTYPES,
    Contents,
    read_contents,
    read_into,
    write_tensors,
)
from tightship.training.step_graph import SEED_MAX

Array = NDArray[Any]

FORMAT = "tightship.checkpoint.1"
STATE = "optimizer.state."
PARTS = {
    "gathered": "gathered",
    "mean": "exp_avg",
    "square": "exp_avg_sq",
    "velocity": "momentum_buffer",
}
"""Names in files by ours; they are torch's where torch has the tensor."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a training.

    Attributes:
        steps: Number of steps made.
        rate: Learning rate of the next step.
        seed: Seed of the dropouts.
    """

    steps: int
    rate: float
    seed: int


def write_checkpoint(
    path: str | PathLike[str],
    tensors: Mapping[str, Array],
    state: Mapping[str, tuple[str, str]],
    progress: Progress,
) -> None:
    """Write a file atomically, without copying tensors.

    Args:
        path: Path of the file.
        tensors: All tensors that stay from step to step, by name.
        state: For each of these that belongs to the optimizer, its weight and its role.
        progress: Progress of the training.

    Raises:
        OSError: The file cannot be written; an older file is untouched.
    """
    metadata = {name: repr(number) for name, number in asdict(progress).items()}
    with draft(Path(path)) as file:
        write_tensors(file, _by_stored_name(tensors, state), {"format": FORMAT, **metadata})


def read_checkpoint(
    path: str | PathLike[str],
    tensors: Mapping[str, Array],
    state: Mapping[str, tuple[str, str]],
) -> Progress:
    """Read a file into the tensors of a trainer, after the whole header has been checked.

    Args:
        path: Path of the file.
        tensors: As for `write_checkpoint`.
        state: As for `write_checkpoint`.

    Raises:
        FormatError: The file is not a checkpoint, or is truncated.
        InputError: The checkpoint belongs to another model or another optimizer.
        OSError: The file cannot be read.
    """
    wanted = _by_stored_name(tensors, state)
    with open(path, "rb") as file:
        found = read_contents(file.fileno())
        progress = _progress(path, found.metadata)
        _check_names(path, found, wanted)
        for name, array in wanted.items():
            had = found.tensors[name]
            shape, dtype = list(array.shape), DTYPES[array.dtype.name]
            if (had.dtype, list(had.shape), had.size_bytes) != (dtype, shape, array.nbytes):
                raise InputError(
                    f"Tensor `{name}` of checkpoint `{path}` is {had.dtype} {list(had.shape)}; the "
                    f"trainer needs {dtype} {shape}. Make the trainer from the model of the "
                    "checkpoint."
                )
        for name, array in wanted.items():
            read_into(file.fileno(), found.tensors[name], array)
    return progress


def _by_stored_name(
    tensors: Mapping[str, Array], state: Mapping[str, tuple[str, str]]
) -> dict[str, Array]:
    stored = {name: f"{STATE}{weight}.{PARTS[part]}" for name, (weight, part) in state.items()}
    return {stored.get(name, name): array for name, array in tensors.items()}


def _progress(path: str | PathLike[str], metadata: Mapping[str, str]) -> Progress:
    if metadata.get("format") != FORMAT:
        raise FormatError(
            f"`{path}` is not a checkpoint: its header has the format `{metadata.get('format')}` "
            f"where `{FORMAT}` is needed. Give a file of `Trainer.save_checkpoint`, or copy the "
            "tensors of other files into `Trainer.weights(copy=False)`."
        )
    try:
        found = Progress(int(metadata["steps"]), float(metadata["rate"]), int(metadata["seed"]))
    except (KeyError, ValueError) as error:
        raise FormatError(f"The header of checkpoint `{path}` is damaged: {error!r}.") from None
    if not (0 <= found.steps <= SEED_MAX and 0 <= found.seed <= SEED_MAX):
        raise FormatError(
            f"The header of checkpoint `{path}` is damaged: `steps` is {found.steps} and `seed` "
            f"{found.seed}; both are 0 to {SEED_MAX}."
        )
    return found


def _check_names(path: str | PathLike[str], found: Contents, wanted: Mapping[str, Array]) -> None:
    """Check the optimizer's tensors first: a checkpoint of another optimizer has all weights."""
    needed, had = _parts(wanted), _parts(found.tensors)
    if needed != had:
        raise InputError(
            f"Checkpoint `{path}` is of another optimizer: it has {_listed(had)} of each weight, "
            f"and the trainer's keeps {_listed(needed)}. Make the trainer with the optimizer and "
            "the `accumulate` of the checkpoint."
        )
    for one, other, text in (
        (wanted, found.tensors, "has no tensor `{}`, which the trainer needs"),
        (found.tensors, wanted, "has a tensor `{}`, which the trainer does not have"),
    ):
        missing = [name for name in one if name not in other]
        if missing:
            raise InputError(
                f"Checkpoint `{path}` {text.format(missing[0])} ({len(missing)} such). Make the "
                "trainer from the model of the checkpoint, for the same weights."
            )


def _parts(names: Collection[str]) -> list[str]:
    """Return the roles of an optimizer's tensors from their names."""
    kinds = {name.rpartition(".")[2] for name in names if name.startswith(STATE)}
    return sorted(kinds & set(PARTS.values()))


def _listed(parts: list[str]) -> str:
    return " and ".join(f"`{part}`" for part in parts) or "nothing"
