"""A program of a user, for the checker of types: public names only, complete annotations."""

from logging import getLogger
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tightship
from tightship import Adam, ArenaGroup, MemoryPlan, Model, Plan, Problem, SharedArenaPool, Trainer
from tightship.driver import Client, RemoteModel, Results, tensor_type
from tightship.errors import CapacityError, InputTypeError, TightshipError
from tightship.frontend.onnx import read
from tightship.gradients import backward, parameters, with_cross_entropy
from tightship.graph import Graph
from tightship.planner import AliasKind, Schedule, ScheduledValue, SchedulePlan, Step, verify
from tightship.resource import HostResource, LimitingResource, MemoryResource, counted, pool
from tightship.resource.virtual import StealingVirtualResource, virtual_resource, write_snapshot
from tightship.types import BoundRun, MemoryStatistics, Profile, ProgramStatistics, TrainingMemory

Floats = NDArray[np.float32]


def log(*facts: object) -> None:
    """Write facts to the log."""
    getLogger(__name__).info(facts)


def plan_and_run(path: Path, x: Floats) -> Floats:
    """Plan a model, run it below a limit, and report an error by its class."""
    plan: MemoryPlan = tightship.plan(path, shapes={"x": x.shape}, without=["onednn"])
    try:
        model: Model = tightship.load(path, max_memory="512MiB", arena_pool=ArenaGroup())
    except CapacityError as error:
        raise SystemExit(f"{error.needed_bytes} of {plan.peak_bytes}") from error
    with model:
        outputs = {"y": np.empty((4, 8), np.float32)}
        bound: BoundRun = model.bind({"x": x}, outputs)
        bound.run(tightship.StopFlag())
        profile: Profile = model.profile({"x": x})
        memory: MemoryStatistics = model.memory_stats()
        programs: ProgramStatistics = model.programs
        log(profile.table(), memory, programs)
        y: Floats = model.run({"x": x})["y"].astype(np.float32)
    return y


def share(path: str) -> None:
    """Prepare a model, and load it with arenas that processes share."""
    tightship.prepare(path, Path(path).with_suffix(".tship"), shapes=[{"x": (4, 32)}])
    with SharedArenaPool(max_arena="1GiB") as arenas, tightship.load(path, arena_pool=arenas):
        tightship.set_primitive_cache_capacity(64, idle_bytes="1MiB")


def place_buffers() -> int | None:
    """Place buffers by sizes and lifetimes, and those of a schedule."""
    column = np.array([64], np.int64)
    placed: Plan = tightship.place(Problem(column, column - 64, column, column), goal="minimize")
    verify(placed)
    steps = (Step("s", "Relu", (), (0,)),)
    planned: SchedulePlan = tightship.planner.place_schedule(
        Schedule((ScheduledValue("a", 64),), steps, (0,))
    )
    log(AliasKind.VIEW, placed.offset_bytes)
    return planned.value_offset(0)


def train(path: str, batch: dict[str, Floats]) -> float:
    """Make a step of training."""
    trainer: Trainer
    with tightship.train(path, "cross_entropy", Adam(0.001), max_memory=1 << 30) as trainer:
        memory: TrainingMemory = trainer.memory
        log(memory.weights_bytes)
        return trainer.step(batch)


def gradients(path: str) -> Graph:
    """Differentiate a graph."""
    graph = with_cross_entropy(read(path), "y", labels="labels", classes_axis=1)
    return backward(graph, wrt=parameters(graph))


def allocate(folder: Path) -> int:
    """Compose resources, and write a snapshot of one."""
    limited: MemoryResource = LimitingResource(HostResource(), "64MiB")
    block = pool(limited, max_bytes="32MiB").allocate_block(64)
    made = virtual_resource(page_bytes="2MiB")
    if isinstance(made, StealingVirtualResource):
        write_snapshot(made, folder / "snapshot.pickle")
    with counted(tightship.resource.StatisticsResource(made)) as counters:
        log(counters().peak_bytes, block.array().dtype, tensor_type(np.float32, (1,)))
    return made.trim()


def call_a_driver(socket: Path, x: Floats) -> None:
    """Run a model in a driver."""
    with Client(socket) as client:
        remote: RemoteModel = client.prepare_named("resnet50", timeout_s=1.0)
        results: Results = remote.execute([x])
        log(results)


def explain(error: TightshipError) -> str:
    """Tell a wrong type from other errors."""
    return "type" if isinstance(error, InputTypeError) else str(error)
