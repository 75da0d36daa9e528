"""Types of arguments and results, for annotations; programs need not make objects of them."""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship._core import PrimitiveCacheStatistics
    from tightship.engine.arenas.retention import Retention
    from tightship.engine.cache.statistics import MemoryStatistics, ProgramStatistics
    from tightship.engine.compile.compile_graph import (
        ExportedProgram,
        ModelSource,
        Shapes,
        TracedFunction,
    )
    from tightship.engine.plan.memory_plan import (
        PlannedStep,
        PlannedTensor,
        PlannedWeight,
        TensorKind,
    )
    from tightship.engine.plan.planned_apart import PlannedApart
    from tightship.engine.program.program import KernelKind
    from tightship.engine.run.profile import Profile
    from tightship.engine.weights.weight_store import Progress
    from tightship.graph.optimizer import Optimizer
    from tightship.model.bound_run import BoundRun
    from tightship.planner.parallel.concurrency import Concurrency, PlanChoice
    from tightship.training.joint import Differentiated
    from tightship.training.planned import TrainingMemory
    from tightship.view.picture import Picture, Rectangle, Step, Weight
    from tightship.view.timing import TimedStep, Timing
else:
    __getattr__ = late_names(
        __name__,
        **{
            "tightship._core": "PrimitiveCacheStatistics",
            "tightship.engine.arenas.retention": "Retention",
            "tightship.engine.cache.statistics": "MemoryStatistics ProgramStatistics",
            "tightship.engine.compile.compile_graph": (
                "ExportedProgram ModelSource Shapes TracedFunction"
            ),
            "tightship.engine.plan.memory_plan": (
                "PlannedStep PlannedTensor PlannedWeight TensorKind"
            ),
            "tightship.engine.plan.planned_apart": "PlannedApart",
            "tightship.engine.program.program": "KernelKind",
            "tightship.engine.run.profile": "Profile",
            "tightship.engine.weights.weight_store": "Progress",
            "tightship.graph.optimizer": "Optimizer",
            "tightship.model.bound_run": "BoundRun",
            "tightship.planner.parallel.concurrency": "Concurrency PlanChoice",
            "tightship.training.joint": "Differentiated",
            "tightship.training.planned": "TrainingMemory",
            "tightship.view.picture": "Picture Rectangle Step Weight",
            "tightship.view.timing": "TimedStep Timing",
        },
    )

__all__ = [
    "BoundRun",
    "Concurrency",
    "Differentiated",
    "ExportedProgram",
    "KernelKind",
    "MemoryStatistics",
    "ModelSource",
    "Optimizer",
    "Picture",
    "PlanChoice",
    "PlannedApart",
    "PlannedStep",
    "PlannedTensor",
    "PlannedWeight",
    "PrimitiveCacheStatistics",
    "Profile",
    "ProgramStatistics",
    "Progress",
    "Rectangle",
    "Retention",
    "Shapes",
    "Step",
    "TensorKind",
    "TimedStep",
    "Timing",
    "TracedFunction",
    "TrainingMemory",
    "Weight",
]
