"""Files of sessions that lack something."""

from pathlib import Path

import numpy as np
import pytest

from tests import decoders
from tests.engine.state.loops import decoder
from tightship.engine.state.cache_rows import CacheRows
from tightship.errors import FormatError, InputError
from tightship.model.session_file import read, write
from tightship.safetensors import write_tensors


def test_rows_come_back(tmp_path: Path) -> None:
    made, path = decoder(decoders.llama(), 16), tmp_path / "s"
    rows, found = CacheRows(made.caches), CacheRows(made.caches)
    rows.reach(0, 5)
    for array in rows.arrays.values():
        array[:, :, :5] = np.random.default_rng(1).standard_normal((1, 2, 5, 8))
    write(path, "digest", rows, 5)
    assert read(path, "digest", made, found) == 5
    for name, array in found.arrays.items():
        np.testing.assert_array_equal(array, rows.arrays[name])
    assert path.stat().st_size < 5 * made.bytes_per_token + 4096


def test_rows_of_another_type_are_refused_by_name(tmp_path: Path) -> None:
    made, path = decoder(decoders.llama(), 16), tmp_path / "s"
    narrow = made.with_cache_type("bfloat16")
    rows = CacheRows(narrow.caches)
    rows.reach(0, 5)
    write(path, "d", rows, 5)
    assert read(path, "d", narrow, CacheRows(narrow.caches)) == 5
    found = CacheRows(made.caches)
    with pytest.raises(InputError, match=r"caches in bfloat16, and this one in float32; restore"):
        read(path, "d", made, found)
    assert not found.pages.count


def test_files_that_lack_something_are_refused(tmp_path: Path) -> None:
    made, path = decoder(decoders.llama(), 16), tmp_path / "s"
    told = {"kind": "tightship session", "model": "d", "length": "3"}
    for metadata, error, match in (
        ({**told, "kind": "x"}, FormatError, "not a session"),
        ({**told, "length": "-1"}, FormatError, "not a session"),
        ({**told, "length": "17"}, InputError, "17 tokens"),
        ({**told, "model": "e"}, InputError, "another model"),
        (told, FormatError, "lacks the rows"),
    ):
        with path.open("wb") as file:
            write_tensors(file, {"x": np.zeros(3, np.float32)}, metadata)
        with pytest.raises(error, match=match):
            read(path, "d", made, CacheRows(made.caches))
    with pytest.raises(InputError, match="cannot be opened"):
        read(tmp_path / "absent", "d", made, CacheRows(made.caches))
