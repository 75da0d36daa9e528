"""A trainer's state in a file: weights, what the optimizer keeps of them, and how far it is.

A file is one of `.safetensors`. Weights have their own names in it, the optimizer's tensors those
that torch's optimizers give them, behind `optimizer.state.` and the name of the weight.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tightship.engine.stored.draft import draft
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
"""Torch's names by ours, where it has one."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a training is.

    Attributes:
        steps: Steps made.
        rate: The learning rate of the next.
        seed: What dropouts draw by.
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
    """Write a file that is there whole or not at all; no tensor is copied.

    Args:
        path: Of the file.
        tensors: All that stays from step to step.
        state: Which of these are no weight but hold something of one: the weight, and what of it.
        progress: How far it is.

    Raises:
        OSError: It cannot be written; an older one is untouched.
    """
    metadata = {name: repr(number) for name, number in asdict(progress).items()}
    with draft(Path(path)) as file:
        write_tensors(file, _by_stored_name(tensors, state), {"format": FORMAT, **metadata})


def read_checkpoint(
    path: str | PathLike[str],
    tensors: Mapping[str, Array],
    state: Mapping[str, tuple[str, str]],
) -> Progress:
    """Read a file into the tensors of a trainer; nothing is written before all is checked.

    Args:
        path: Of the file.
        tensors: As for `write_checkpoint`.
        state: As for `write_checkpoint`.

    Raises:
        FormatError: It is no checkpoint, or was cut.
        InputError: It is of another model or another optimizer.
        OSError: It cannot be read.
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
                    f"trainer needs {dtype} {shape}. Make the trainer from the model that the "
                    "checkpoint is of."
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
            f"`{path}` is no checkpoint: its header has the format `{metadata.get('format')}` "
            f"where `{FORMAT}` is needed. Give what `Trainer.save_checkpoint` wrote; tensors of "
            "other files go into `Trainer.weights(copy=False)`."
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
    """The optimizer's first: a file of another one has all weights."""
    needed, had = _parts(wanted), _parts(found.tensors)
    if needed != had:
        raise InputError(
            f"Checkpoint `{path}` is of another optimizer: it has {_listed(had)} of each weight, "
            f"and the trainer's keeps {_listed(needed)}. Make the trainer with the optimizer, and "
            "the `accumulate`, that the checkpoint is of."
        )
    for one, other, text in (
        (wanted, found.tensors, "has no tensor `{}`, which the trainer needs"),
        (found.tensors, wanted, "has a tensor `{}`, which the trainer does not have"),
    ):
        missing = [name for name in one if name not in other]
        if missing:
            raise InputError(
                f"Checkpoint `{path}` {text.format(missing[0])} ({len(missing)} such). Make the "
                "trainer from the model, and for the weights, that the checkpoint is of."
            )


def _parts(names: Collection[str]) -> list[str]:
    """What an optimizer keeps, by the names of its tensors."""
    kinds = {name.rpartition(".")[2] for name in names if name.startswith(STATE)}
    return sorted(kinds & set(PARTS.values()))


def _listed(parts: list[str]) -> str:
    return " and ".join(f"`{part}`" for part in parts) or "nothing"
