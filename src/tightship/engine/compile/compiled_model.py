"""Lowered and placed model, ready to be loaded or written into a prepared file."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tightship.engine.plan.footprint import runtime_bytes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.plan.placement import Placement, memory_plan
from tightship.engine.program.program import PackedWeight

PackedBefore = Mapping[str, Sequence[PackedWeight]]
"""Packed layouts of constants, by name, that programs for other shapes use."""


class CompiledModel(NamedTuple):
    """Model that is lowered and placed, with nothing of it in memory yet."""

    placement: Placement
    name: str
    node_count: int
    key: Mapping[str, str]
    stated: MemoryPlan | None = None
    """Memory plan that a prepared file states, if the model came from one."""

    @property
    def runtime_bytes(self) -> int:
        """Bytes that the model takes besides tensors."""
        if self.stated is not None:
            return self.stated.runtime_bytes
        return runtime_bytes(self.placement.lowered, self.node_count)

    @property
    def plan(self) -> MemoryPlan:
        """Memory plan, computed on access unless the model came with one."""
        return self.stated or memory_plan(
            self.placement, self.name, self.runtime_bytes, dict(self.key)
        )
