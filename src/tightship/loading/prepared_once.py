"""`load(model, share=True)`: a model prepared once for this user, its weights mapped by all."""

import hashlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TypeVar

from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of
from tightship.engine.stored.compatibility import Compatibility
from tightship.errors import InputError, warn_caller
from tightship.prepared_cache import (
    About,
    Identity,
    PreparedCache,
    UnusableCacheError,
    cache_folder,
    cache_size_bytes,
    identify,
)

Loaded = TypeVar("Loaded")

WRITTEN = "2"
"""Raised when one version of Tightship writes prepared files otherwise than it did before."""


def shared(
    model: ModelSource,
    settings: Settings,
    make: Callable[[Path], None],
    read: Callable[[Path, Identity], Loaded],
) -> Loaded | None:
    """What `read` makes of the model's prepared file, which `make` writes if there is none.

    Where the cache cannot serve, one warning says why, and nothing is shared.

    Args:
        model: Path of an ONNX file, or its bytes.
        settings: What else the file depends on.
        make: As for `PreparedCache.read`.
        read: Likewise; given what the model is as well.

    Raises:
        InputError: There is no such file.
    """
    try:
        return _cached(model, settings, make, read)
    except UnusableCacheError as error:
        reason = str(error).rstrip(".")
        text = f"`{name_of(model)}` is loaded for this process alone: {reason}."
        warn_caller(text)
        return None


def _cached(
    model: ModelSource,
    settings: Settings,
    make: Callable[[Path], None],
    read: Callable[[Path, Identity], Loaded],
) -> Loaded:
    cache = PreparedCache(cache_folder(), cache_size_bytes())
    cache.open()
    identity = _identity(model, cache.folder)

    def make_unchanged(path: Path) -> None:
        try:
            make(path)
        except InputError as error:
            raise UnusableCacheError(str(error)) from None
        if not identity.is_current():
            raise UnusableCacheError("its file changed while it was prepared")

    name = str(Path(model).absolute()) if isinstance(model, str | PathLike) else name_of(model)
    about = About(identity.digest, identity.size_bytes, _facts(settings), name)
    return cache.read(about, make_unchanged, lambda path: read(path, identity))


def _identity(model: ModelSource, folder: Path) -> Identity:
    if isinstance(model, bytes):
        return Identity(hashlib.sha256(model).hexdigest(), len(model))
    if not isinstance(model, str | PathLike):
        raise InputError(
            "An exported program has no file by which other processes find it; leave `share` out, "
            "or load a file that `tightship.prepare` has written."
        )
    path = Path(model)

    def data_files() -> tuple[Path, ...]:
        from tightship.frontend import PROGRAM_SUFFIX  # what is known already is not read
        from tightship.frontend.onnx import open_file

        if path.suffix == PROGRAM_SUFFIX:
            return ()
        return open_file(path).data_files()

    try:
        return identify(path, data_files, folder)
    except OSError as error:
        raise InputError(f"The model `{model}` cannot be read: {error.strerror}.") from None


def _facts(settings: Settings) -> dict[str, str]:
    """All that a prepared file depends on besides the model."""
    shapes = {
        f"shape {name}": f"{name}={'x'.join(map(str, shape))}"
        for name, shape in sorted((settings.shapes or {}).items())
    }
    here = Compatibility.here(settings.threads, settings.without)
    return {
        "version": here.version,
        "written": WRITTEN,
        "threads": str(here.threads),
        "without": " ".join(here.without),
        **here.library,
        **shapes,
    }
