"""Limits on the memory of a model's programs and of their runs."""

from typing import TYPE_CHECKING, NamedTuple

from tightship.engine.arenas.retention import Retention

if TYPE_CHECKING:
    from tightship.engine.arenas.arena_group import ArenaGroup
    from tightship.resource.shared_arenas import SharedArenaPool


class Bounds(NamedTuple):
    """Limits on the memory of a model's programs and of their runs.

    Attributes:
        arenas: Runs that may execute at once.
        limit_bytes: Limit on weights, arenas, inputs, outputs and runtime together.
        dynamic_bytes: Bytes that steps outside the plan may allocate in each run.
        programs: Programs held at once.
        program_bytes: Bytes of steps, generated code and weights that belong to programs alone.
        retention: How much arena memory stays allocated between runs; at least the first program's.
        arena_pool: Pool of arenas shared with other processes or with other models of this process;
            None for a pool of the model's own.
        pool_bytes: Bytes of free pools kept for steps outside the plan; None for those that the
            environment allows.
    """

    arenas: int = 1
    limit_bytes: int | None = None
    dynamic_bytes: int | None = None
    programs: int = 32
    program_bytes: int = 256 << 20
    retention: Retention = Retention()
    arena_pool: "SharedArenaPool | ArenaGroup | None" = None
    pool_bytes: int | None = None
