"""oneDNN out of memory at one call after another: reported, nothing kept, nothing made slower."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.fake_library import refusing
from tests.small_models import dense
from tightship import _core
from tightship.engine.library import VARIABLE, bundled

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")

REFUSE_EACH = """
import ctypes, sys
import numpy as np
import tightship
from tightship.engine.primitive_cache import process_cache

def loaded():
    with tightship.load(sys.argv[1], shapes={"x": (4, 32)}) as model:
        steps = [(step.kernel, step.implementation) for step in model.plan.steps]
        return steps, model.plan.peak_bytes, model.run({"x": x})["y"].tobytes()

x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(4, 32)
wanted = loaded()
left = ctypes.c_int.in_dll(ctypes.CDLL(sys.argv[2]), "calls_left")
refused = 0
while True:
    process_cache().release_idle()
    left.value = refused
    try:
        found = loaded()
    except tightship.OutOfMemoryError as error:
        assert "out of memory" in str(error), error
        assert left.value == -1
        refused += 1
        continue
    assert found == wanted, (refused, found, wanted)
    if left.value >= 0:
        break
    refused += 1
print(refused)
"""


def test_each_call_that_is_refused_memory_is_reported_and_the_next_is_as_the_first(tmp_path):
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense()[0])
    library = refusing(tmp_path, Path(bundled()))
    done = subprocess.run(
        [sys.executable, "-c", REFUSE_EACH, path, library],
        env={**os.environ, VARIABLE: str(library)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20
