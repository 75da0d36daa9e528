"""Models in several files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, Model, decoder, logits
from tests.frontend.gguf.written import written
from tightship.errors import FormatError, InputError
from tightship.frontend.gguf import open_file
from tightship.frontend.gguf.shards import open_shards


def split(model: Model, folder: Path, count: int = 3, **changed: Any) -> Path:
    """Write a model's tensors into shards in turn; return the first."""
    names = sorted(model.tensors)
    for number in range(count):
        fields = {"split.no": ("u16", number), "split.count": ("u16", count),
                  "split.tensors.count": len(names), **changed}  # fmt: skip
        if not number:
            whole = {f"{model.kind}.{key}": each for key, each in model.fields.items()}
            fields |= {"general.architecture": model.kind, **whole}
        own = {name: model.tensors[name] for name in names[number::count]}
        path = folder / f"m-{number + 1:05}-of-{count:05}.gguf"
        path.write_bytes(written(fields, own))
    return folder / f"m-00001-of-{count:05}.gguf"


def test_shards_are_one_model(tmp_path: Path) -> None:
    model = decoder()
    path = split(model, tmp_path)
    assert [each.name for each in open_file(path).data_files()] == [
        "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"
    ]  # fmt: skip
    with tightship.load(path) as loaded:
        found = loaded.session(32).step(IDS)[0, -1]
    np.testing.assert_allclose(found, logits(model)[-1], rtol=1e-4, atol=1e-4)


def test_shards_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = split(decoder(), tmp_path)
    with pytest.raises(FormatError, match=r"is shard 00002; give the first, `m-00001-of-00003"):
        open_shards(path.with_name("m-00002-of-00003.gguf"))
    lone = path.with_name("lone.gguf")
    lone.write_bytes(path.read_bytes())
    with pytest.raises(FormatError, match=r"one of 3 shards, whose names must end with"):
        open_shards(lone)
    second = path.with_name("m-00002-of-00003.gguf")
    second.write_bytes(path.with_name("m-00003-of-00003.gguf").read_bytes())
    with pytest.raises(FormatError, match=r"says that it is shard 2 of 3, .* says 1 of 3"):
        open_shards(path)
    second.unlink()
    with pytest.raises(InputError, match=r"`.*m-00002-of-00003.gguf` does not exist"):
        open_shards(path)


def test_a_number_of_tensors_must_agree(tmp_path: Path) -> None:
    path = split(decoder(), tmp_path, **{"split.tensors.count": 5})
    with pytest.raises(FormatError, match=r"`split.tensors.count` says 5"):
        open_shards(path)


def test_a_cut_file_is_planned_and_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    data = decoder("llama", "Q8_0").written()
    path.write_bytes(data)
    whole = tightship.plan(path)
    path.write_bytes(data[: len(data) // 3])
    assert tightship.plan(path).peak_bytes == whole.peak_bytes
    with pytest.raises(FormatError, match=f"has {len(data) // 3} bytes of {len(data)}: its header"):
        tightship.load(path)
    with pytest.raises(FormatError, match=r"Finish the download"):
        tightship.prepare(path, tmp_path / "m.tship")
