"""Prepares a model once for a user, so that all processes share its weights."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

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
from tightship.sha256 import hexdigest

Loaded = TypeVar("Loaded")

Caller = Callable[..., Any]
"""Function that calls another with some arguments, as `ReadingProcess.call` does."""

WRITTEN = "5"
"""Version of the content that one version of Tightship writes; raised when that changes."""


def shared(
    model: ModelSource,
    settings: Settings,
    make: Callable[[Path], None],
    read: Callable[[Path, Identity], Loaded],
    apart: Caller | None = None,
) -> Loaded | None:
    """Return what `read` makes of the prepared file, which `make` writes if there is none.

    If the cache is unusable, a warning says why, and the result is None.

    Args:
        model: Path of an ONNX file, or its bytes.
        settings: Settings that the file depends on.
        make: Function that writes the file at a path.
        read: Function that reads the file at a path, given the model's identity.
        apart: As for `identity_of`.

    Raises:
        InputError: The model's file does not exist.
    """
    try:
        return read_prepared(model, settings, make, read, apart)
    except UnusableCacheError as error:
        reason = str(error).rstrip(".")
        text = f"`{name_of(model)}` is loaded for this process alone: {reason}."
        warn_caller(text)
        return None


def read_prepared(
    model: ModelSource,
    settings: Settings,
    make: Callable[[Path], None],
    read: Callable[[Path, Identity], Loaded],
    apart: Caller | None = None,
) -> Loaded:
    """Return what `read` makes of the prepared file, as `shared` does, or raise the reason.

    Raises:
        InputError: The model's file does not exist.
        UnusableCacheError: The cache cannot be used, or the model cannot be prepared.
    """
    cache = open_cache()
    identity = identity_of(model, cache.folder, apart)

    def make_unchanged(path: Path) -> None:
        try:
            make(path)
        except InputError as error:
            raise UnusableCacheError(str(error)) from None
        if not identity.is_current():
            raise UnusableCacheError("its file changed while it was prepared")

    about = about_of(identity.digest, identity.size_bytes, settings, place_of(model))
    return cache.read(about, make_unchanged, lambda path: read(path, identity))


def open_cache() -> PreparedCache:
    """Open the cache of this user.

    Raises:
        UnusableCacheError: Its folder cannot be made, or other users can write it.
    """
    cache = PreparedCache(cache_folder(), cache_size_bytes())
    cache.open()
    return cache


def place_of(model: ModelSource) -> str:
    """Return where a model is, as shown to users."""
    return str(Path(model).absolute()) if isinstance(model, str | PathLike) else name_of(model)


def about_of(digest: str, size_bytes: int, settings: Settings, name: str) -> About:
    """Collect the facts that identify the prepared file of a model with these settings, here."""
    return About(digest, size_bytes, _facts(settings), name)


def identity_of(model: ModelSource, folder: Path, apart: Caller | None = None) -> Identity:
    """Return the identity of a model by the bytes of its files, noted in the cache's folder.

    Args:
        model: Path of a model, or its bytes.
        folder: Folder of the cache.
        apart: Function that calls one which imports the reader of models; None calls it here.

    Raises:
        InputError: The model is not a file or bytes, or cannot be read.
    """
    if isinstance(model, bytes):
        return Identity(hexdigest(model), len(model))
    if not isinstance(model, str | PathLike):
        raise InputError(
            "A module or exported program has no file by which other processes find it; leave "
            "`share` out, or load a file that `tightship.prepare` has written."
        )
    path = Path(model)

    def data_files() -> tuple[Path, ...]:
        return _data_files(path) if apart is None else apart(_data_files, path)

    try:
        return identify(path, data_files, folder)
    except OSError as error:
        raise InputError(f"The model `{model}` cannot be read: {error.strerror}.") from None


def _data_files(path: Path) -> tuple[Path, ...]:
    """Return the files with weights of a model; called only for files not identified before."""
    from tightship.frontend import PROGRAM_SUFFIX
    from tightship.frontend.model_file import open_model_file

    if path.suffix == PROGRAM_SUFFIX:
        return ()
    return tuple(open_model_file(path).data_files())


def _facts(settings: Settings) -> dict[str, str]:
    """List all that a prepared file depends on besides the model."""
    shapes = {
        f"shape {name}": f"{name}={'x'.join(map(str, shape))}"
        for name, shape in sorted(settings.input_shapes.items())
    }
    here = Compatibility.here(settings.threads, settings.without, settings.workers)
    return {
        "version": here.version,
        "written": WRITTEN,
        "threads": str(here.threads),
        "workers": str(here.workers),
        "workers_memory": str(settings.workers_memory),
        "without": " ".join(here.without),
        **here.library,
        **shapes,
    }
