"""Sources of served models: files, with arguments of `tightship.load`."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Protocol

from tightship.driver.oip.model_config import ModelConfig, VersionPolicy
from tightship.errors import InputError
from tightship.loading.activations import Activations

VERSION = "1"
"""Version of a model that is given as a file, because files have none."""

ANY_POLICY = VersionPolicy()

Stamp = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of modification of files: what changes if one of them is replaced."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """File of a version of a model, and arguments of `tightship.load`.

    Attributes:
        config: Configuration that the model must match; None for no conditions.
        stamp: Files when they were found; a model is not loaded again for an equal source with a
            stamp.
    """

    path: str | PathLike[str]
    shapes: Mapping[str, Sequence[int]] | None = None
    threads: int | None = None
    max_memory: int | str | None = None
    dynamic_memory: int | str | None = None
    config: ModelConfig | None = None
    stamp: Stamp = ()
    share: bool = False
    activations: Activations | None = None

    def versions(self, config: str | None = None) -> Mapping[str, "ModelSource"]:
        """Return the source of each version to serve.

        Raises:
            InputError: A configuration is given, which a file cannot have.
        """
        if config is not None:
            raise InputError(
                f"`{self.path}` was given as a file; only a model in a folder of "
                "`--model-repository` is loaded with a configuration."
            )
        return {VERSION: self}

    def loads_like(self, other: "ModelSource") -> bool:
        """Whether loading this source would give the model that another one has given."""
        return bool(self.stamp) and _without_policy(self) == _without_policy(other)

    def found(self) -> Stamp:
        """Return the state of the file."""
        return stamp_of([os.fspath(self.path)])


class Source(Protocol):
    """Source of all versions of a model."""

    def versions(self, config: str | None = None) -> Mapping[str, ModelSource]:
        """Return the source of each version to serve, in ascending order.

        Args:
            config: Configuration in JSON that replaces that of the files.

        Raises:
            InputError: The source has no version to serve, or its configuration is not valid.
            OSError: It cannot be read.
        """
        ...

    def found(self) -> Stamp:
        """Return the state of the files that decide what is served."""
        ...


Sources = Callable[[], Mapping[str, Source]]
"""Returns the current models by name: a folder may gain and lose some."""


def _without_policy(source: ModelSource) -> ModelSource:
    """Return a source without the choice of versions, which changes nothing in one of them."""
    config = source.config
    return source if config is None else replace(source, config=replace(config, policy=ANY_POLICY))


def stamp_of(paths: Sequence[str]) -> Stamp:
    """Return the state of files; those that do not exist are left out."""
    found = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        found.append((path, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)
