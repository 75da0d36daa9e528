"""Know a model's peak memory before you run it, run it in exactly that, share its weights.

    import tightship

    plan = tightship.plan("model.onnx", shapes={"ids": (1, 128)})
    print(plan.peak_bytes)
    with tightship.load("model.onnx", max_memory="512MiB") as model:
        result = model(x)

The names stand in the order in which one learns them. Names with few uses, and the public modules,
are imported when they are first used.
"""
# ruff: noqa: I001, RUF022 - imports and names are in the order in which one learns them

from typing import TYPE_CHECKING

from tightship.late_names import late_names

# Models: the memory that one takes, and a run in exactly that.
from tightship.loading import plan
from tightship.loading import load
from tightship.model import Model
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship._core import StopFlag
from tightship._core import version as _version

# Sharing: one copy of the weights in all processes, one arena for each run.
from tightship.loading.preparing import prepare

# Buffers of your own compiler or board.
from tightship.planner import Problem
from tightship.planner import Plan

# Training.
from tightship.training.train import train

# Memory of the process.
from tightship.memory import memory_stats
from tightship.memory import release_unused_memory
from tightship.engine.primitive_cache import set_primitive_cache_capacity
from tightship.engine.primitive_cache import get_primitive_cache_capacity
from tightship.engine.primitive_cache import primitive_cache_statistics

# Errors, one class for each decision that a caller can take; `tightship.errors` has the others.
from tightship.errors import TightshipError
from tightship.errors import InputError
from tightship.errors import FormatError
from tightship.errors import GraphError
from tightship.errors import CapacityError
from tightship.errors import OutOfMemoryError
from tightship.errors import DeadlineError
from tightship.errors import StoppedError
from tightship.errors import PlanError
from tightship.errors import InvalidPlanError
from tightship.errors import LibraryError

if TYPE_CHECKING:
    from tightship import backend as backend
    from tightship import budget as budget
    from tightship import cluster as cluster
    from tightship import difference as difference
    from tightship import driver as driver
    from tightship import embedding as embedding
    from tightship import frontend as frontend
    from tightship import gradients as gradients
    from tightship import graph as graph
    from tightship import lengths as lengths
    from tightship import notebook as notebook
    from tightship import plug as plug
    from tightship import primitive as primitive
    from tightship import resource as resource
    from tightship import sample as sample
    from tightship import serve as serve
    from tightship import text as text
    from tightship import types as types
    from tightship.engine.arenas.arena_group import ArenaGroup
    from tightship.graph.optimizer import Adam
    from tightship.graph.optimizer import Sgd
    from tightship.model.session import Session
    from tightship.model.session_pool import SessionPool
    from tightship.planner import place
    from tightship.resource import SharedArenaPool
    from tightship.training.train import train_joint
    from tightship.training.trainer import Trainer
else:
    __getattr__ = late_names(
        __name__,
        backend="",
        budget="",
        cluster="",
        difference="",
        driver="",
        embedding="",
        frontend="",
        gradients="",
        graph="",
        lengths="",
        notebook="",
        planner="place",
        plug="",
        primitive="",
        resource="SharedArenaPool",
        sample="",
        serve="",
        text="",
        types="",
        **{
            "engine.arenas.arena_group": "ArenaGroup",
            "graph.optimizer": "Adam Sgd",
            "model.session": "Session",
            "model.session_pool": "SessionPool",
            "training.train": "train_joint",
            "training.trainer": "Trainer",
        },
    )

__version__ = _version()
__all__ = [
    # Models
    "plan",
    "load",
    "Model",
    "Session",
    "SessionPool",
    "MemoryPlan",
    "StopFlag",
    # Sharing
    "prepare",
    "SharedArenaPool",
    "ArenaGroup",
    # Buffers
    "place",
    "Problem",
    "Plan",
    # Training
    "train",
    "Trainer",
    "Sgd",
    "Adam",
    "train_joint",
    # Memory of the process
    "memory_stats",
    "release_unused_memory",
    "set_primitive_cache_capacity",
    "get_primitive_cache_capacity",
    "primitive_cache_statistics",
    # Errors
    "TightshipError",
    "InputError",
    "FormatError",
    "GraphError",
    "CapacityError",
    "OutOfMemoryError",
    "DeadlineError",
    "StoppedError",
    "PlanError",
    "InvalidPlanError",
    "LibraryError",
]
