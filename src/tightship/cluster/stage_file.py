"""Writes a stage into a prepared file with its weights alone, and finds the file on a node."""

import hashlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tightship.cluster.node_file import check_digest
from tightship.cluster.replica_memory import Shapes
from tightship.cluster.stage_origin import Origin, compiled
from tightship.cluster.stage_program import StagePrograms
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library, release_unused
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.recipes import recording
from tightship.engine.stored.save import save
from tightship.errors import InputError
from tightship.loading.prepared_once import about_of, identity_of, open_cache
from tightship.loading.reading_process import ReadingProcess

if TYPE_CHECKING:
    from tightship.cluster.splitting import Stage


@dataclass(frozen=True, slots=True)
class StageSource:
    """Stage of a model that every node has to find by the same bytes.

    Attributes:
        model: Path of the ONNX file.
        digest: Digest of the bytes of its files.
        size_bytes: Total size of its files.
        shapes: Shapes by input.
        threads: Threads of each kernel.
        part: Name, steps and signature of the stage.
    """

    model: str
    digest: str
    size_bytes: int
    shapes: Shapes | None
    threads: int
    part: "Part"

    def path(self) -> str:
        """Return the path of the stage's file in this node's cache, prepared if it is missing.

        Raises:
            InputError: The model is missing on this node or has other bytes, or this processor
                has other steps than the one that split the model.
            UnusableCacheError: The cache cannot be used.
        """
        if not Path(self.model).is_file():
            raise InputError(
                f"`{self.model}` is missing on this node, which is to run {self.part.name}. Put "
                "the model in a folder that every node can read."
            )
        open_library()
        cache = open_cache()
        check_digest(self.model, self.digest, identity_of(self.model, cache.folder))
        settings = Settings(self.shapes, self.threads)
        about = about_of(self.digest, self.size_bytes, settings, self.part.name)
        start, stop = self.part.steps
        about = about._replace(facts={**about.facts, "steps": f"{start} to {stop - 1}"})

        def make(path: Path) -> None:
            with ReadingProcess() as process:
                process.call(_write, self.model, self.shapes, self.threads, self.part, str(path))

        return cache.read(about, make, str)


@dataclass(frozen=True, slots=True)
class Part:
    """Steps of a model.

    Attributes:
        name: Name of the stage in reports.
        steps: First step, and the step after the last.
        signature: Digest of its steps, its inputs and outputs, and its bytes.
    """

    name: str
    steps: tuple[int, int]
    signature: str


def source_of_stage(stage: "Stage") -> StageSource:
    """Identify a stage by the bytes of its model.

    Raises:
        InputError: The model is not a file, or has changed since it was split.
        UnusableCacheError: The folder of the cache cannot be used.
    """
    origin = stage.origin
    origin.check_unchanged()
    path = str(Path(origin.path).absolute())
    identity = identity_of(path, open_cache().folder)
    shapes = origin.shapes
    if shapes:
        from tightship.loading.opening import open_for

        shapes = open_for(path, Settings(shapes, origin.threads))[1].input_shapes
    return StageSource(
        path, identity.digest, identity.size_bytes, shapes, origin.threads, part_of(stage)
    )


def part_of(stage: "Stage") -> Part:
    """Describe the steps of a stage."""
    return Part(stage.plan.model, (stage.start_step, stage.stop_step), _signature(stage.plan))


def prepare_stage(stage: "Stage", output: str | PathLike[str]) -> MemoryPlan:
    """Write a stage into a file, as `Stage.prepare`."""
    stage.origin.check_unchanged()
    path = Path(output)
    if isinstance(stage.origin.model, str | PathLike) and path.exists() \
            and path.samefile(stage.origin.model):  # fmt: skip
        raise InputError(f"`{path}` would take the place of the model; give another name.")
    write_stage(stage.origin, part_of(stage), path)
    return StoredModel(path).plan()


def write_stage(origin: Origin, part: Part, path: Path) -> None:
    """Compile a model, and write steps of it into a file.

    Raises:
        InputError: They are not the steps that were planned, because the model or the processor is
            another one; or one of them cannot be stored.
    """
    with recording():
        whole = compiled(origin)
        placement, _ = StagePrograms(whole.placement.lowered).placed(part.steps)
    found = CompiledModel(placement, part.name, 0, whole.key)
    if _signature(found.plan) != part.signature:
        raise InputError(
            f"`{part.name}`: this model or processor has other steps than the one that was split. "
            "Split the model on a node of the kind that runs the stages."
        )
    save(path, [found], Compatibility.here(origin.threads, ()))
    del whole, placement, found
    release_unused()


def _write(model: str, shapes: Shapes | None, threads: int, part: Part, path: str) -> None:
    write_stage(Origin(model, shapes, threads, None), part, Path(path))


def _signature(plan: MemoryPlan) -> str:
    """Return a digest of all that the other stages and the booking depend on."""
    steps = [(each.name, each.implementation) for each in plan.steps]
    sizes = plan.weights_bytes, plan.arena_bytes, plan.io_bytes
    text = repr((steps, dict(plan.inputs), dict(plan.outputs), sizes))
    return hashlib.sha256(text.encode()).hexdigest()
