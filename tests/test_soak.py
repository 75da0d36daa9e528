"""The soak test counts what a process holds, and says what grew."""

import mmap
import os
import random

import pytest
from benchmarks import soak_serve
from benchmarks.soak_hostile import lies
from benchmarks.soak_models import write_models
from benchmarks.soak_serve import GROWTH_MAX_BYTES, POOLS, Held, growth, held, printed

import tightship

FIRST = Held(50 << 20, 25, 11)
MORE = sum(count - 1 for count in POOLS.values())


def test_a_process_that_takes_memory_files_and_threads_holds_more():
    before = held(os.getpid())
    taken = mmap.mmap(-1, 16 << 20)  # a block of the heap may be one that is resident already
    taken.write(random.randbytes(16 << 20))
    reader, writer = os.pipe()
    after = held(os.getpid())
    os.close(reader)
    os.close(writer)
    size = len(taken)
    taken.close()
    assert after.anonymous_bytes >= before.anonymous_bytes + size // 2
    assert after.descriptors == before.descriptors + 2
    assert after.threads == before.threads


@pytest.mark.parametrize(
    ("last", "named"),
    [
        (FIRST, []),
        (Held(FIRST.anonymous_bytes + GROWTH_MAX_BYTES, 20, 5), []),
        (Held(FIRST.anonymous_bytes + GROWTH_MAX_BYTES + 1, 25, 11), ["anonymous"]),
        (Held(0, 25, 11 + MORE), []),
        (Held(0, 26, 12 + MORE), ["descriptors", "threads"]),
    ],
)
def test_growth_is_named(last, named):
    assert [each.split()[0] for each in growth(FIRST, last)] == named


def test_models_are_valid_and_all_lies_are_sent(tmp_path):
    write_models(tmp_path)
    for file in tmp_path.glob("*.onnx"):
        tightship.plan(file, shapes={"x": (1, 4)} if file.stem == "text" else None)
    assert len({lies(random.Random(seed)) for seed in range(200)}) >= 12


@pytest.mark.slow
def test_a_short_soak_serves_honest_clients(monkeypatch):
    monkeypatch.setattr(soak_serve, "FIRST_S", 5.0)
    monkeypatch.setattr(soak_serve, "SETTLE_S", 1.0)
    found = soak_serve.measured(0.1, seed=1)
    assert "after first minute" in "\n".join(printed(found))
    assert {name.rpartition(" ")[0] for name in found["actions"]} == {
        " ".join(kind) for kind in soak_serve.KINDS
    }
    assert not [each for each in found["failures"] if "honest" in each]
