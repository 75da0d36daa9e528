"""How much a connection, and a user with all of his, may have at once."""

import enum
from collections.abc import Mapping

from tightship.driver.rules.status import ErrorStatus
from tightship.errors import DriverError


class Resource(enum.IntEnum):
    """What is counted."""

    CONNECTIONS = 0
    POOLS = 1
    POOL_BYTES = 2
    BUFFERS = 3
    BUFFER_BYTES = 4
    MODELS = 5
    EXECUTIONS = 6
    BURSTS = 7
    CALLS = 8


Limits = Mapping[Resource, int]


class Account:
    """What is used, and how much may be; 0 <= used <= limit, here and in the account above."""

    def __init__(self, limits: Limits, above: "Account | None" = None) -> None:
        """`above` is charged along: the user of a connection."""
        self._limits = limits
        self._chain: tuple[Account, ...] = (self,) if above is None else (self, *above._chain)
        self.used = dict.fromkeys(Resource, 0)

    def room(self, resource: Resource) -> int:
        """How much more may be charged."""
        return min(each._limits[resource] - each.used[resource] for each in self._chain)

    def charge(self, resource: Resource, amount: int = 1) -> None:
        """Take some.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_PERSISTENT if it is more than the limit by itself,
                RESOURCE_EXHAUSTED_TRANSIENT if it would be with what is used. Nothing is taken.
        """
        room = self.room(resource)
        if amount > room:
            raise self._refusal(resource, amount, room)
        self._add(resource, amount)

    def _refusal(self, resource: Resource, amount: int, room: int) -> DriverError:
        limit = self.limit(resource)
        if amount > limit:
            return DriverError(
                f"{amount} {resource.name} were asked for; the limit is {limit}.",
                status=ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
            )
        return DriverError(
            f"{amount} {resource.name} were asked for; {room} of {limit} are left. "
            "Give some back first.",
            status=ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
        )

    def refund(self, resource: Resource, amount: int = 1) -> None:
        """Give some back."""
        self._add(resource, -amount)

    def limit(self, resource: Resource) -> int:
        """How much may be charged when nothing is used."""
        return min(each._limits[resource] for each in self._chain)

    def _add(self, resource: Resource, amount: int) -> None:
        for each in self._chain:
            each.used[resource] += amount
            assert each.used[resource] >= 0, (resource, each.used)
