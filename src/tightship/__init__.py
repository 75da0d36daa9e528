"""Know a model's peak memory before you run it, run it in exactly that, share its weights.

    import tightship

    plan = tightship.plan("model.onnx", shapes={"ids": (1, 128)})
    print(plan.peak_bytes)
    with tightship.load("model.onnx", max_memory="512MiB") as model:
        result = model(x)

Layers, top to bottom (an import goes strictly down): cli, backend, loading, model, engine,
view, frontend | planner | resource, graph, errors.
"""

from tightship._core import StopFlag as StopFlag
from tightship.engine.plan.memory_plan import MemoryPlan as MemoryPlan
from tightship.engine.primitive_cache import (
    get_primitive_cache_capacity as get_primitive_cache_capacity,
)
from tightship.engine.primitive_cache import (
    primitive_cache_statistics as primitive_cache_statistics,
)
from tightship.engine.primitive_cache import (
    set_primitive_cache_capacity as set_primitive_cache_capacity,
)
from tightship.errors import CapacityError as CapacityError
from tightship.errors import DeadlineError as DeadlineError
from tightship.errors import FormatError as FormatError
from tightship.errors import GraphError as GraphError
from tightship.errors import InputError as InputError
from tightship.errors import InvalidPlanError as InvalidPlanError
from tightship.errors import LibraryError as LibraryError
from tightship.errors import OutOfMemoryError as OutOfMemoryError
from tightship.errors import PlanError as PlanError
from tightship.errors import StoppedError as StoppedError
from tightship.errors import TightshipError as TightshipError
from tightship.graph.optimizer import Adam as Adam
from tightship.graph.optimizer import Sgd as Sgd
from tightship.loading import load as load
from tightship.loading import plan as plan
from tightship.loading.preparing import prepare as prepare
from tightship.memory import memory_stats as memory_stats
from tightship.memory import release_unused_memory as release_unused_memory
from tightship.model import Model as Model
from tightship.planner import Plan as Plan
from tightship.planner import Problem as Problem
from tightship.training.train import train as train

__version__ = "0.1.0"
