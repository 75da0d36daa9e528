"""Chooses the pool that gives the runs of a model their arenas."""

from typing import TYPE_CHECKING

from tightship.engine.arenas.arena_pool import ArenaPool
from tightship.engine.arenas.retention import Retention

if TYPE_CHECKING:
    from tightship.engine.arenas.arena_group import ArenaGroup, GroupBackings
    from tightship.engine.arenas.shared_backings import SharedBackings
    from tightship.resource.shared_arenas import SharedArenaPool


def pool_of(
    arenas: int, retention: Retention, shared: "SharedArenaPool | ArenaGroup | None"
) -> "ArenaPool | SharedBackings | GroupBackings":
    """Make a pool for one model, or its entry to a pool that processes or models share.

    Args:
        arenas: Runs that may execute at once, for a pool of the model's own.
        retention: How much arena memory stays allocated between runs.
        shared: The shared pool; None for a pool of the model's own.
    """
    if shared is None:
        return ArenaPool(arenas, retention)
    from tightship.engine.arenas.arena_group import ArenaGroup, GroupBackings  # few need these

    if isinstance(shared, ArenaGroup):
        return GroupBackings(shared)
    from tightship.engine.arenas.shared_backings import SharedBackings  # sessions do without

    return SharedBackings(shared, retention)
