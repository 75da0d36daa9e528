"""Bounds of what the programs of a model and their runs may take."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tightship.engine.arenas.retention import Retention

if TYPE_CHECKING:
    from tightship.engine.arenas.joint_arenas import JointArenas
    from tightship.resource.shared_arenas import SharedArenaPool


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the programs of a model, and their runs, may take.

    Attributes:
        arenas: Runs that may go on at once.
        limit_bytes: Everything together: weights, arenas, inputs and outputs, runtime.
        dynamic_bytes: What steps outside the plan may allocate in each run.
        programs: Programs held at once.
        program_bytes: What they may take: steps, generated code and weights of their own.
        retention: What stays of arenas that no run needs, the first program's at least.
        arena_pool: Whose arenas runs take in turns with other processes, or with other models of
            this one; None for its own.
    """

    arenas: int = 1
    limit_bytes: int | None = None
    dynamic_bytes: int | None = None
    programs: int = 32
    program_bytes: int = 256 << 20
    retention: Retention = field(default_factory=Retention)
    arena_pool: "SharedArenaPool | JointArenas | None" = None
