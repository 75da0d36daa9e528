"""Folder of a model in Triton's layout: `config.pbtxt`, and a folder with a file per version."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tightship.driver.oip.config_text import TEXT_BYTES_MAX, read_json, read_text
from tightship.driver.oip.model_config import (
    DYNAMIC_MEMORY,
    INTRA_OP_THREADS,
    MAX_MEMORY,
    ModelConfig,
)
from tightship.driver.oip.model_source import ModelSource, Stamp, stamp_of
from tightship.errors import InputError

CONFIG = "config.pbtxt"
FILE_NAMES = ("model.onnx", "model.tship")
VERSION_DIGITS_MAX = 18
FILES_MAX = 4096
"""Files of a version that are watched for changes."""

Shapes = Mapping[str, tuple[int, ...]]
ShapesOf = Callable[[str, Path], Shapes]
"""Returns the shapes that the server was started with for the file of a model, by its name."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """Model in a folder, whose name is the model's.

    Attributes:
        shapes_of: Shapes to plan for that the configuration does not give.
    """

    path: Path
    shapes_of: ShapesOf = lambda *_: {}

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.path.name

    def versions(self, config: str | None = None) -> Mapping[str, ModelSource]:
        """Return the source of each version to serve; see `Source.versions`.

        Raises:
            InputError: The configuration is not valid, or its policy leaves no version to serve.
            OSError: A file cannot be read.
        """
        read = self.config() if config is None else read_json(config)
        if read.name not in {"", self.name}:
            raise InputError(
                f"The configuration has the name `{read.name}`; its folder is `{self.name}`. Give "
                "both the same name."
            )
        chosen = read.policy.chosen(self._present())
        return {str(each): self._source(self.path / str(each), read) for each in chosen}

    def found(self) -> Stamp:
        """Return the state of the configuration and of all versions."""
        files = [str(self.path / CONFIG)]
        for version in sorted(self._present()):
            files += _files(self.path / str(version))
        return stamp_of(files)

    def config(self) -> ModelConfig:
        """Return the configuration of the folder's file; an empty one if it has none.

        Raises:
            InputError: It is not valid.
            OSError: It cannot be read.
        """
        path = self.path / CONFIG
        try:
            with path.open("rb") as file:
                data = file.read(TEXT_BYTES_MAX + 1)
        except FileNotFoundError:
            return ModelConfig()
        if len(data) > TEXT_BYTES_MAX:
            raise InputError(f"`{CONFIG}` has more than {TEXT_BYTES_MAX} bytes.")
        try:
            return read_text(data.decode())
        except UnicodeDecodeError:
            raise InputError(f"`{CONFIG}` is not text in UTF-8.") from None
        except InputError as error:
            raise InputError(f"`{CONFIG}`: {error}") from None

    def _present(self) -> list[int]:
        with os.scandir(self.path) as entries:
            return [int(each.name) for each in entries if _is_version(each)]

    def _source(self, folder: Path, config: ModelConfig) -> ModelSource:
        path, stamp = _file(folder, config), stamp_of(_files(folder))
        threads = config.parameter(INTRA_OP_THREADS)
        return ModelSource(
            path,
            self.shapes_of(self.name, path) or None,
            None if threads is None else _threads(threads),
            config.parameter(MAX_MEMORY),
            config.parameter(DYNAMIC_MEMORY),
            config,
            stamp,
        )


def _file(folder: Path, config: ModelConfig) -> Path:
    """Return the file of a version; the first that it may have, if it has none."""
    names = (config.file_name,) if config.file_name else FILE_NAMES
    files = [folder / name for name in names]
    return next((each for each in files if each.is_file()), files[0])


def _threads(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) >= 1 and len(text) < 9):
        raise InputError(
            f"Parameter `{INTRA_OP_THREADS}` is `{text}`; it must be a number of threads from 1."
        )
    return int(text)


def _is_version(entry: "os.DirEntry[str]") -> bool:
    name = entry.name
    is_number = name.isascii() and name.isdigit() and not name.startswith("0")
    return is_number and len(name) <= VERSION_DIGITS_MAX and entry.is_dir()


def _files(folder: Path) -> list[str]:
    """Return all files beneath a folder, of which external data may be some."""
    found = []
    for path, folders, names in os.walk(folder):
        folders.sort()
        found += [os.path.join(path, name) for name in sorted(names)]
        if len(found) >= FILES_MAX:
            break
    return found[:FILES_MAX]


def model_folders(repository: Path, shapes_of: ShapesOf) -> dict[str, ModelFolder]:
    """Return the models of a repository by name: its folders, without hidden ones.

    Raises:
        InputError: The repository is not a folder that can be read.
    """
    try:
        with os.scandir(repository) as entries:
            names = sorted(each.name for each in entries if each.is_dir())
    except OSError as error:
        raise InputError(
            f"The model repository `{repository}` cannot be read: {error.strerror}. Name a folder "
            "with a folder per model."
        ) from None
    return {
        name: ModelFolder(repository / name, shapes_of)
        for name in names
        if not name.startswith(".")
    }
