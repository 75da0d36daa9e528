"""PyTorch and CuPy on Tightship's pools, on a real CUDA device; each in a process of its own."""

import json
import subprocess
import sys

import pytest

from tests.scenarios.gpu.driver import require_device

require_device()


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def torch():
    """PyTorch with CUDA, imported by other processes only."""
    said = "import torch; raise SystemExit(not torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", said], capture_output=True, check=False).returncode:
        pytest.skip("needs a PyTorch that can use the CUDA device")


TRAINING = """
import json, sys, torch
from torch import nn
from tightship.plug import torch as plug
if sys.argv[1] == "tightship":
    torch.cuda.memory.change_current_allocator(plug.allocator())
torch.manual_seed(0)
torch.use_deterministic_algorithms(False)
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(30):
    x = torch.randn(64 + 7 * step, 512, device="cuda")
    loss = (model(x) - x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())
held = None
if sys.argv[1] == "tightship":
    held = plug.memory_stats()
    del model, optimizer, x, loss
    torch.cuda.synchronize()
    held = [held["allocated_bytes.all.current"], plug.empty_cache() > 0]
print(json.dumps([losses, held]))
"""


@pytest.mark.usefixtures("torch")
def test_training_gives_the_losses_of_torchs_own_allocator():
    losses, held = run(TRAINING, "tightship")
    assert losses == run(TRAINING, "native")[0]
    assert losses[-1] < losses[0]
    assert held[0] > 0
    assert held[1]


STREAMS = """
import json, torch
from tightship.plug import torch as plug
torch.cuda.memory.change_current_allocator(plug.allocator())
side, wrong = torch.cuda.Stream(), 0
for step in range(50):
    x = torch.full((1 << 22,), float(step), device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000)
        total = x.double().sum()
    x.record_stream(side)
    del x
    spoiled = [torch.full((1 << 22,), -1.0, device="cuda") for _ in range(3)]
    torch.cuda.current_stream().wait_stream(side)
    wrong += total.item() != step * (1 << 22)
    del spoiled
print(json.dumps(wrong))
"""


@pytest.mark.usefixtures("torch")
def test_a_block_recorded_for_another_stream_is_not_reused_before_that_is_done():
    assert run(STREAMS) == 0


CHURN = """
import json, random, torch
from tightship import _core
from tightship.plug import torch as plug
torch.cuda.memory.change_current_allocator(plug.allocator(max_bytes=3 << 30))
choice, streams = random.Random(0), [torch.cuda.Stream() for _ in range(4)]
live = [[] for _ in streams]
wrong = torch.zeros(4, dtype=torch.int64, device="cuda")
torch.cuda.synchronize()
for mark in range(3000):
    number = choice.randrange(4)
    with torch.cuda.stream(streams[number]):
        if mark % 50 == 0:
            torch.cuda._sleep(2_000_000)
        if len(live[number]) > 12 or (live[number] and choice.random() < 0.45):
            block, written = live[number].pop(choice.randrange(len(live[number])))
            wrong[number] += (block != written).sum()
            del block  # before the work on it is done
        else:
            count = choice.randrange(1, choice.choice((1000, 1 << 20, 1 << 24)))
            block = torch.full((count,), mark, dtype=torch.int32, device="cuda")
            live[number].append((block, mark))
torch.cuda.synchronize()
print(json.dumps([wrong.tolist(), _core.cuda_pool_statistics(0).moved_count]))
"""


@pytest.mark.usefixtures("torch")
def test_blocks_of_four_streams_that_are_freed_before_their_work_is_done_keep_their_bytes():
    wrong, moved_count = run(CHURN)
    assert wrong == [0] * 4
    assert moved_count > 0


REFUSAL = """
import json, torch
from tightship.plug import torch as plug
torch.cuda.memory.change_current_allocator(plug.allocator(max_bytes=1 << 30))
kept = torch.ones(1 << 20, device="cuda")
try:
    torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    said = ""
except RuntimeError as error:
    said = str(error).splitlines()[0]
print(json.dumps([said, (kept + 1).sum().item(), plug.memory_stats()["reserved_bytes.all.peak"]]))
"""


@pytest.mark.usefixtures("torch")
def test_a_limit_is_a_runtime_error_with_the_numbers_and_the_program_goes_on():
    said, total, reserved = run(REFUSAL)
    assert f"Cannot allocate {1 << 31} bytes" in said
    assert total == 2 << 20
    assert reserved <= 1 << 30


POOL = """
import json, torch
from tightship.plug import torch as plug
pool = plug.memory_pool()
outside = torch.ones(1 << 20, device="cuda")
before = plug.memory_stats()["allocated_bytes.all.current"]
with torch.cuda.use_mem_pool(pool):
    inside = torch.full((1 << 20,), 3.0, device="cuda")
now = plug.memory_stats()["allocated_bytes.all.current"]
total = (inside + outside).sum().item()
print(json.dumps([before, now, total]))
"""


@pytest.mark.usefixtures("torch")
def test_a_pool_serves_a_part_of_a_program():
    before, now, total = run(POOL)
    assert before == 0
    assert now >= 4 << 20
    assert total == 4 << 20


CUPY = """
import json, cupy
from tightship.errors import OutOfMemoryError
from tightship.plug import cupy as plug
from tightship.plug import pools
cupy.cuda.set_allocator(plug.allocator(max_bytes=1 << 30))
a = cupy.arange(1 << 20, dtype=cupy.float64)
total = 0.0
for step in range(20):
    b = a * step
    total += float(b.sum())
    del b
held = pools.statistics(0)["allocated_bytes.all.current"]
try:
    cupy.zeros(1 << 31, dtype=cupy.uint8)
    said = ""
except OutOfMemoryError as error:
    said = str(error)
with cupy.cuda.Stream(non_blocking=True):
    c = cupy.ones(1000)
    d = float((c + 1).sum())
del a, c
print(json.dumps([total, held, said, d]))
"""


def test_cupy_computes_in_a_pool_and_refuses_in_words():
    pytest.importorskip("cupy")
    total, held, said, doubled = run(CUPY)
    assert total == sum(range(20)) * sum(range(1 << 20))
    assert held >= 8 << 20
    assert said.startswith(f"Cannot allocate {1 << 31} bytes")
    assert doubled == 2000
