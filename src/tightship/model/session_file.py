"""Files of sessions: rows of the caches in use, with the digest of their model."""

import os
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from tightship.atomic_file import draft
from tightship.engine.state.cache_rows import CacheRows
from tightship.engine.state.decoder import Decoder
from tightship.errors import FormatError, InputError
from tightship.safetensors import DTYPES, StoredTensor, read_contents, read_into, write_tensors

KIND = "tightship session"


def write(path: str | PathLike[str], digest: str, rows: CacheRows, length: int) -> None:
    """Write the rows in use, with the model's digest."""
    tensors = {name: np.ascontiguousarray(rows.part(name, 0, length)) for name in rows.arrays}
    metadata = {"kind": KIND, "model": digest, "length": str(length)}
    with draft(Path(path)) as file:
        write_tensors(file, tensors, metadata)


def read(path: str | PathLike[str], digest: str, decoder: Decoder, rows: CacheRows) -> int:
    """Read the rows of a file into new memory; return their number.

    Raises:
        FormatError: The file is not one of `write`.
        InputError: It is of another model or type of caches, or has more rows than the context.
        CapacityError: The cap of pages does not hold the rows.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"The session `{path}` cannot be opened: {error.strerror}.") from None
    try:
        contents = read_contents(file)
        told = contents.metadata
        if told.get("kind") != KIND or not told.get("length", "").isdigit():
            raise FormatError(f"`{path}` is not a session's file.")
        if told.get("model") != digest:
            raise InputError(f"The session `{path}` is of another model.")
        length = int(told["length"])
        if length > decoder.context:
            raise InputError(
                f"The session `{path}` has {length} tokens, more than the context of "
                f"{decoder.context}."
            )
        _check_types(path, contents.tensors, decoder)
        rows.reach(0, length)
        for name in rows.arrays:
            part = rows.part(name, 0, length)
            stored = contents.tensors.get(name)
            if stored is None or stored.shape != part.shape:
                raise FormatError(f"`{path}` lacks the rows of the cache `{name}`.")
            array = np.empty(part.shape, part.dtype)
            read_into(file, stored, array)
            part[...] = array
    finally:
        os.close(file)
    return length


def _check_types(
    path: str | PathLike[str], tensors: Mapping[str, StoredTensor], decoder: Decoder
) -> None:
    """Refuse rows that are stored in another type than a decoder's caches."""
    names = {stored: name for name, stored in DTYPES.items()}
    for cache in decoder.caches:
        found, wanted = tensors.get(cache.pair.past), cache.dtype.value
        if found is not None and found.dtype != DTYPES[wanted]:
            given = names.get(found.dtype, found.dtype)
            raise InputError(
                f"The session `{path}` has its caches in {given}, and this one in {wanted}; "
                f"restore it into a session whose caches have {given}: one opened with "
                f'`cache="{given}"`, or without `cache` if the model has that type.'
            )
