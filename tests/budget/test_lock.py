import os
import subprocess
import sys

import pytest

from tests.budget.budgets import write
from tightship.budget import (
    check_budgets,
    locked,
    read_lock,
    write_lock,
)
from tightship.errors import FormatError, InputError

LOCK = """
import sys
from tightship.budget import check_budgets, locked
from tightship.budget.lock import lock_text
print(lock_text(locked(check_budgets(), "avx2")))
"""


def test_every_run_writes_the_same_bytes(folder):
    write(folder, 'model = "model.onnx"\nshapes = {batch = 8}', 'model = "dynamic.onnx"')
    texts = set()
    for seed in ("0", "1", "2"):
        for isa in ("AVX2", "AVX512_CORE"):
            environment = {**os.environ, "PYTHONHASHSEED": seed, "ONEDNN_MAX_CPU_ISA": isa}
            texts.add(subprocess.check_output([sys.executable, "-c", LOCK], env=environment))
    assert len(texts) == 1


def test_titles_of_any_letters_survive_a_lock_file(folder):
    name = 'name = "a\\"b\\\\c\\tü"\n'
    found = locked(check_budgets(write(folder, name + 'model = "dynamic.onnx"')), "avx2")
    write_lock(folder / "tightship.lock", found)
    assert read_lock(folder / "tightship.lock") == found


@pytest.mark.parametrize("text", ["[", "", "version = 1\nisa = 3\nmodel = 4", "version = 2"])
def test_other_files_are_no_lock_files(folder, text):
    (folder / "tightship.lock").write_text(text)
    with pytest.raises(FormatError, match="tightship budget lock"):
        read_lock(folder / "tightship.lock")
    with pytest.raises(InputError, match=r"The file `no.lock` does not exist"):
        read_lock("no.lock")
