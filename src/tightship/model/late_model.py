"""Defines `LateModel`: a model whose own program is built when it is first wanted.

Sessions have programs of their own, so that a process which only opens sessions need not have it.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from tightship._core import HostResource
from tightship.engine.cache.bounds import Bounds
from tightship.engine.cache.program_cache import ProgramCache
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.shape_specializer import ShapeSpecializer
from tightship.engine.library import release_unused
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import Lowered, PackedWeight
from tightship.engine.weights.weight_store import PackedCopy, Progress, WeightStore
from tightship.errors import InputError
from tightship.graph import DType, Shape
from tightship.model.loaded import LOADED, Model


class LateProgram(NamedTuple):
    """A model's own program before it is read.

    Attributes:
        name: Name of the model in reports.
        types: Element types of the inputs.
        weights: Its weights, in order.
        without: Passes that are left out.
        read: Returns it, with these weights.
    """

    name: str
    types: Mapping[str, DType]
    weights: Sequence[PackedWeight]
    without: Collection[str]
    read: Callable[[], CompiledModel]


class LateModel(Model):
    """A model whose weights are packed, and whose own program is built when it is wanted."""

    def __init__(
        self,
        late: LateProgram,
        bounds: Bounds,
        variants: ShapeSpecializer,
        progress: Progress | None = None,
    ) -> None:
        """Pack the weights.

        Args:
            late: The program.
            bounds: Limits, without one of all memory, which a plan has to be read for.
            variants: Prepares the model for other input shapes.
            progress: As for `load`.

        Raises:
            OutOfMemoryError: The system refuses memory.
        """
        assert bounds.limit_bytes is None, "a plan is compared with the limit before"
        self._late, self._bounds = late, bounds
        self._variants: ShapeSpecializer | None = variants
        self._has_open_shapes, self._workers = True, 1  # programs for several are not kept
        self._limit_bytes = None
        self._store = WeightStore(HostResource())
        self._early = self._store.copies(late.weights, progress)
        self._programs: ProgramCache | None = None
        self._is_shut = False
        self._kept = None
        self._closing, self._building = threading.Lock(), threading.RLock()
        LOADED.add(self)

    @cached_property
    def plan(self) -> MemoryPlan:  # type: ignore[override]
        """Every byte that the model takes with the shapes it was loaded for, with offsets."""
        return self._late.read().plan if self._is_shut else self._open().first_plan

    @cached_property
    def _lowered(self) -> Lowered:  # type: ignore[override]
        return self._late.read().placement.lowered if self._is_shut else self._open().first_lowered

    @cached_property
    def _key(self) -> tuple[tuple[str, tuple[int, ...]], ...]:  # type: ignore[override]
        return tuple((name, operand.shape) for name, operand in self._lowered.inputs.items())

    @cached_property
    def known_output_shapes(self) -> dict[str, Shape | None]:
        """Shape of every output for any inputs; the model's own program is not read for it."""
        known = {} if self._variants is None else self._variants.output_shapes()
        return dict(known) or super().known_output_shapes

    def _open(self) -> ProgramCache:
        with self._building:
            self._check_open()
            if self._programs is None:
                self._programs = ProgramCache(
                    self._late.read(), self._bounds, self._variants, store=self._store
                )
                release_unused()
            return self._programs

    def _check_open(self) -> None:
        if self._is_shut:
            raise InputError(f"`{self._name}` is closed; load it again to run it.")

    @property
    def _name(self) -> str:
        return self._late.name

    def _types(self) -> dict[str, DType]:
        return dict(self._late.types)

    def _left_out(self) -> Collection[str]:
        return self._late.without

    def _outputs(self) -> Mapping[str, Shape | None]:
        assert self._variants is not None, "sessions have a model that is open"
        return self._variants.output_shapes()

    def _packed(self) -> Sequence[PackedCopy]:
        return self._early

    def close(self) -> None:
        """Release all memory; waits for runs in progress. Further calls have no effect."""
        with self._closing, self._building:
            if self._is_shut:
                return
            self._is_shut, self._early = True, ()
            self._close_sessions()
            if self._programs is not None:
                self._programs.close()
                self._programs = None
            self._store.keep(())
            self._variants = None

    @property
    def is_closed(self) -> bool:
        """Whether `close` has released all memory."""
        return self._is_shut
