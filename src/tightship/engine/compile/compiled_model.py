"""A model that is lowered and placed: what is loaded, or written into a prepared file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tightship.engine.plan.footprint import runtime_bytes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.plan.placement import Placement, memory_plan
from tightship.engine.program.program import PackedWeight

PackedBefore = Mapping[str, Sequence[PackedWeight]]
"""Constants, by name, as programs for other shapes have packed them."""


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """A model lowered and placed, nothing of it in memory yet."""

    placement: Placement
    name: str
    node_count: int
    key: Mapping[str, str]
    stated: MemoryPlan | None = None
    """The report of it, where it came with one."""

    @property
    def runtime_bytes(self) -> int:
        """What it takes besides tensors."""
        if self.stated is not None:
            return self.stated.runtime_bytes
        return runtime_bytes(self.placement.lowered, self.node_count)

    @property
    def plan(self) -> MemoryPlan:
        """The report of it, made when it is asked for unless it came with one."""
        return self.stated or memory_plan(
            self.placement, self.name, self.runtime_bytes, dict(self.key)
        )
