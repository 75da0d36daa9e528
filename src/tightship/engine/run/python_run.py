"""Steps of a run that run in Python: NumPy kernels, and kernels that allocate their results."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship._core import DynamicMemory
from tightship.engine.interruption import interrupted_by
from tightship.engine.plan.footprint import BLAS_KERNELS
from tightship.engine.program.program import KernelWork, Operand, ReferenceWork, Space
from tightship.engine.run.arena import Arena
from tightship.engine.run.executable import PythonStep
from tightship.engine.run.limits import Limits
from tightship.errors import GraphError, OutOfMemoryError

Array = NDArray[np.generic]


@dataclass(slots=True)
class PythonRun:
    """Python steps of one run, with their operands."""

    arena: Arena
    external: Mapping[int, Array]
    objects: dict[str, Any]
    limits: Limits
    threads: int
    memory: DynamicMemory | None = None
    """Memory of steps outside the plan, from the first of them on."""
    is_inside: bool = False
    """Whether new arrays come from there, as they do between two such steps."""

    def enter(self) -> None:
        """Take new arrays from the memory of steps outside the plan."""
        if self.limits.dynamic is None:
            return
        if self.memory is None:
            self.memory = self.limits.dynamic.begin()
        self.memory.__enter__()
        self.is_inside = True

    def leave(self) -> None:
        """Take new arrays from NumPy again."""
        if self.memory is not None and self.is_inside:
            self.is_inside = False
            self.memory.__exit__()

    def end(self) -> None:
        """Leave arrays that are alive to the caller."""
        self.leave()
        if self.memory is not None and self.limits.dynamic is not None:
            self.limits.dynamic.end(self.memory)

    def step(self, segment: PythonStep) -> None:
        """Run a step on its operands, and keep its results."""
        work = segment.work
        if isinstance(work, KernelWork):
            if self.is_inside:
                self.leave()
            inputs = [None if operand is None else self.planned(operand) for operand in work.inputs]
            outputs = [None if o is None else self.planned(o) for o in work.outputs]
            is_product = segment.step.implementation in BLAS_KERNELS
            with self._blas_threads() if is_product else nullcontext():
                work.kernel.run(inputs, outputs, self.arena.scratch.get(segment.index))
        else:
            if not self.is_inside:
                self.enter()
            with self._blas_threads():  # bodies of control flow have products as well
                self.reference(segment, work)
            for name in segment.frees:
                self.drop(name)

    def _blas_threads(self) -> AbstractContextManager[None]:
        from tightship.engine.run.blas import thread_limit

        limit = thread_limit()
        return nullcontext() if limit is None else limit.at_most(self.threads)

    def reference(self, segment: PythonStep, work: ReferenceWork) -> None:
        """Run a reference kernel and keep its results, in memory that counts against the limit."""
        operands = [None if operand is None else self.any(operand) for operand in work.inputs]
        try:
            with interrupted_by(self.limits.check):
                results = work.run(operands)
            self.keep(segment, work, results)
        except MemoryError as error:
            wanted = 0 if self.memory is None else self.memory.refused_bytes
            if self.memory is None or not wanted:
                raise
            raise OutOfMemoryError(
                f"Step `{segment.step.name}` ({segment.step.operator}) would bring what is "
                f"allocated outside the plan to {wanted} bytes, more than `dynamic_memory` "
                "allows. Raise it, or give the model smaller inputs.",
                requested_bytes=wanted,
                available_bytes=self.memory.live_bytes,
            ) from error

    def planned(self, operand: Operand) -> Array:
        """Return the array of a planned operand."""
        if operand.space is not Space.EXTERNAL:
            return self.arena.array(operand)
        array = self.external[operand.slot]
        if array.dtype == operand.dtype.numpy and array.nbytes == operand.size_bytes:
            return array.reshape(operand.shape)
        start = operand.offset_bytes  # bytes, of which the operand is a part
        part = array.reshape(-1).view(np.uint8)[start : start + operand.size_bytes]
        return part.view(operand.dtype.numpy).reshape(operand.shape)

    def any(self, operand: Operand) -> Any:  # noqa: ANN401
        """Return the array of a planned operand, or an object."""
        return self.found(operand.name) if operand.space is Space.OBJECT else self.planned(operand)

    def found(self, name: str) -> Any:  # noqa: ANN401
        """Return an object."""
        return self.objects[name]

    def store(self, name: str, value: Any) -> None:  # noqa: ANN401
        """Keep an object."""
        self.objects[name] = value

    def drop(self, name: str) -> None:
        """Drop an object that no later step reads."""
        del self.objects[name]

    def keep(self, segment: PythonStep, work: ReferenceWork, results: Sequence[Any]) -> None:
        """Copy results into planned bytes, or keep them as objects."""
        sources = [o for o in work.inputs if o is not None and o.space is not Space.OBJECT]
        planned = [self.planned(operand) for operand in sources]
        for operand, result in zip(work.outputs, results, strict=True):
            if operand is None:
                continue
            if operand.space is Space.OBJECT:
                self.store(operand.name, _owned(result, planned))
                continue
            target = self.planned(operand)
            if result.shape != target.shape or result.dtype != target.dtype:
                raise GraphError(
                    f"Node `{segment.step.name}` made `{operand.name}` with shape {result.shape} "
                    f"and dtype {result.dtype}; the graph says {target.shape}, {target.dtype}."
                )
            np.copyto(target, result)


def dense(value: Any) -> Any:  # noqa: ANN401
    """Copy arrays that are views of others, as Expand and Transpose return them."""
    if isinstance(value, list):
        return [dense(element) for element in value]
    is_plain = not isinstance(value, np.ndarray) or value.flags.carray
    return value if is_plain else value.copy()


def _owned(result: Any, planned: Sequence[Array]) -> Any:  # noqa: ANN401
    """Copy a result that shares planned bytes, which later steps overwrite."""
    if isinstance(result, list):
        return [_owned(element, planned) for element in result]
    if isinstance(result, np.ndarray) and any(np.may_share_memory(result, p) for p in planned):
        return result.copy()
    return result
