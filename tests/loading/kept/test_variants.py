"""A model whose file is read when a program is wanted that is not kept."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.encoders import embedding_model
from tightship.loading.kept.variants import LateVariants
from tightship.prepared_cache import identity


def test_other_lengths_run_as_without_kept_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.setenv("TIGHTSHIP_KEEP_PROGRAMS", "1")
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))
    path = tmp_path / "m.gguf"
    path.write_bytes(embedding_model("Q8_0"))
    found = []
    for keep_programs in (False, True, True):
        with tightship.load(path, keep_programs=keep_programs) as model:
            assert isinstance(model._variants, LateVariants) == keep_programs
            names = {name: np.dtype(t.numpy) for name, (t, _) in model.input_types.items()}
            inputs = {name: np.ones((1, 5), dtype) for name, dtype in names.items()}
            results = [array.tolist() for array in model.run(inputs).values()]
            found.append([results, model.open_lengths, model.known_output_shapes.keys()])
    assert found[0] == found[1] == found[2]
