"""Where runs of a model have their arenas."""

from typing import TYPE_CHECKING

from tightship.engine.arenas.arena_pool import ArenaPool
from tightship.engine.arenas.retention import Retention

if TYPE_CHECKING:
    from tightship.engine.arenas.joint_arenas import JointArenas, JointRooms
    from tightship.engine.arenas.shared_rooms import SharedRooms
    from tightship.resource.shared_arenas import SharedArenaPool


def pool_of(
    arenas: int, retention: Retention, shared: "SharedArenaPool | JointArenas | None"
) -> "ArenaPool | SharedRooms | JointRooms":
    """A pool of the model's own, or its rooms in one that other processes or models share.

    Args:
        arenas: Runs that may go on at once, where the pool is the model's own.
        retention: What stays of arenas that no run needs.
        shared: The pool that others share.
    """
    if shared is None:
        return ArenaPool(arenas, retention)
    from tightship.engine.arenas.joint_arenas import JointArenas, JointRooms  # few need these
    from tightship.engine.arenas.shared_rooms import SharedRooms

    if isinstance(shared, JointArenas):
        return JointRooms(shared)
    return SharedRooms(shared, retention)
