"""A decision for each buffer, one within the other, on a small stack."""

import subprocess
import sys

import pytest

CODE = """
import sys
import threading
import numpy as np
from tightship.planner import Problem
from tightship.planner.constraints import Constraints
from tightship.planner.placements.exact import fit
from tightship.planner.placements.exact_items import ItemSearch, Within

count = int(sys.argv[1])
ones = np.ones(count, np.int64)
made = Problem(ones, 0 * ones, ones, ones)
few = Problem(*(column[:1000] for column in made.columns()), constraints=Constraints())

def run():
    found = fit(made, count, effort=10**11)
    print(found.verdict, sorted(found.offset_bytes.tolist()) == list(range(count)))
    found = ItemSearch(few).fit(Within(peak_bytes=1000), effort=10**11)
    print(found.verdict, sorted(found.offset_bytes.tolist()) == list(range(1000)))

threading.stack_size(192 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


@pytest.mark.parametrize("count", [3_000, pytest.param(12_000, marks=pytest.mark.slow)])
def test_many_decisions_need_no_more_stack_than_one(count):
    finished = subprocess.run(
        [sys.executable, "-c", CODE, str(count)], capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stdout) == (0, "fits True\nfits True\n"), finished.stderr
