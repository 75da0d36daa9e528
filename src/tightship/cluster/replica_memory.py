"""Computes what one replica of a model takes and what a node holds once, before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import NamedTuple

from tightship.engine.compile.compile_graph import Settings, name_of
from tightship.engine.plan.footprint import (
    runtime_bytes,
    stored_resident_bytes,
    stored_runtime_bytes,
)
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import Lowered
from tightship.engine.stored.container import PAGE_BYTES, holds_prepared
from tightship.errors import InputError
from tightship.graph import element_count
from tightship.public_calls import explains_memory

ModelFile = str | PathLike[str]
"""Path of an ONNX model."""
Shapes = Mapping[str, Sequence[int] | int]


class Runtime(NamedTuple):
    """Bytes of a replica besides tensors: resident, and reserved with idle reservations."""

    resident_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True)
class Requirements:
    """Memory of a model in a cluster, in bytes.

    Attributes:
        model: Name of the model in reports.
        weights_bytes: Packed weights: once for each node if `is_shared`, otherwise in each replica.
        arena_bytes: Activations and scratch of a replica.
        io_bytes: Inputs and outputs of a call.
        runtime_bytes: Resident code and program of a replica beyond an idle worker.
        reserved_bytes: Runtime that a limit on data must leave room for, idle reservations
            included.
        threads: Threads of each kernel.
        is_shared: Whether replicas of one node map one copy of the weights.
        request_bytes: Room of a replica for what receives requests and answers them.
        input_elements: Elements of all inputs.
        output_elements: Elements of all outputs.
    """

    model: str
    weights_bytes: int
    arena_bytes: int
    io_bytes: int
    runtime_bytes: int
    reserved_bytes: int
    threads: int = 1
    is_shared: bool = True
    request_bytes: int = 0
    input_elements: int = 0
    output_elements: int = 0

    @property
    def node_bytes(self) -> int:
        """Bytes that a node holds once, however many replicas it has."""
        return self.weights_bytes if self.is_shared else 0

    @property
    def replica_bytes(self) -> int:
        """Bytes that one replica adds to its worker process."""
        own = 0 if self.is_shared else self.weights_bytes
        return own + self.arena_bytes + self.io_bytes + self.runtime_bytes + self.request_bytes

    @property
    def data_bytes(self) -> int:
        """Growth of a replica's writable memory, which `RLIMIT_DATA` bounds."""
        own = 0 if self.is_shared else self.weights_bytes
        return own + self.arena_bytes + self.io_bytes + self.reserved_bytes + self.request_bytes

    @property
    def plan_bytes(self) -> int:
        """Peak of the plan: the limit to load a replica with, so that runs take turns."""
        return self.weights_bytes + self.arena_bytes + self.io_bytes + self.reserved_bytes


@explains_memory("planning a model")
def requirements(
    model: ModelFile,
    *,
    shapes: Shapes | None = None,
    threads: int | None = None,
    share: bool = True,
) -> Requirements:
    """Compute what a replica of a model takes, without loading it and without Ray.

    A worker process of Ray takes memory of its own besides (`worker_bytes`).

    Args:
        model: Path of an ONNX file or of a prepared model.
        shapes: Shapes by input, or lengths by dimension, as for `tightship.plan`: the largest that
            replicas accept.
        threads: Threads of each kernel; by default one, or as the model was prepared for.
        share: Whether the replicas of a node map one prepared file.

    Raises:
        FormatError, GraphError: The errors of `tightship.plan`.
        InputError: An error of `tightship.plan`; a step allocates outside the plan, so that no
            booking covers it; or a prepared model is given with `share=False`.
    """
    if not isinstance(model, str | PathLike):
        raise InputError(
            f"A model of a cluster is a path that its nodes can read, not {type(model).__name__}."
        )
    if holds_prepared(model):
        if not share:
            raise InputError(
                f"`{name_of(model)}` is prepared, so replicas share its weights; leave `share` "
                "out, or give the ONNX file."
            )
        return _of_prepared(model, shapes, threads)
    return _of_file(model, Settings(shapes, 1 if threads is None else threads), share=share)


def _of_prepared(model: ModelFile, shapes: Shapes | None, threads: int | None) -> Requirements:
    from tightship.engine.library import open_library
    from tightship.engine.stored.model import StoredModel
    from tightship.loading.restoring import Asked, plan_prepared, program_index

    asked = Asked(shapes, threads)
    plan = plan_prepared(model, asked)
    stored = StoredModel(model)
    if stored.compatibility.needs_library:
        open_library()
    lowered = stored.prepared(program_index(stored, asked)).placement.lowered
    runtime = Runtime(stored_resident_bytes(lowered), plan.runtime_bytes)
    needs = _requirements(
        plan, plan.weights_bytes, runtime, stored.compatibility.threads, share=True
    )
    return _with_elements(needs, lowered)


def _of_file(model: ModelFile, settings: Settings, *, share: bool) -> Requirements:
    from tightship.engine.library import open_library
    from tightship.loading.opening import anew, open_for

    open_library()
    source, settings = open_for(fspath(model), settings)
    compiled = anew(source, name_of(model), settings)
    lowered, plan = compiled.placement.lowered, compiled.plan
    own = runtime_bytes(lowered, compiled.node_count)
    runtime = Runtime(own, own)
    if not share:
        needs = _requirements(plan, plan.weights_bytes, runtime, settings.threads, share=False)
        return _with_elements(needs, lowered)
    runtime = Runtime(stored_resident_bytes(lowered), stored_runtime_bytes(lowered))
    weights = -(-plan.weights_bytes // PAGE_BYTES) * PAGE_BYTES  # a file has whole pages of them
    needs = _requirements(plan, weights, runtime, settings.threads, share=True)
    return _with_elements(needs, lowered)


def _with_elements(needs: Requirements, lowered: Lowered) -> Requirements:
    """Add the number of elements, by which the room for JSON counts."""
    return replace(
        needs,
        input_elements=sum(element_count(each.shape) for each in lowered.inputs.values()),
        output_elements=sum(element_count(each.shape) for each in lowered.outputs.values()),
    )


def _requirements(
    plan: MemoryPlan, weights_bytes: int, runtime: Runtime, threads: int, *, share: bool
) -> Requirements:
    check_exact(plan)
    return Requirements(
        plan.model, weights_bytes, plan.arena_bytes, plan.io_bytes, runtime.resident_bytes,
        runtime.reserved_bytes, threads, share,
    )  # fmt: skip


def check_exact(plan: MemoryPlan) -> None:
    """Check that no step of a plan allocates outside of it.

    Raises:
        InputError: A step does; names the first.
    """
    steps = [step for step in plan.steps if step.dynamic_reason is not None]
    if steps:
        raise InputError(
            f"`{plan.model}` has {len(steps)} step(s) that allocate outside the plan, the first "
            f"`{steps[0].name}` ({steps[0].operator}: {steps[0].dynamic_reason}). A booking cannot "
            "cover them; serve this model with `tightship serve`, or export it with fixed shapes."
        )
