"""Limits on what a connection, and all connections of a user together, may hold at once."""

import enum
import threading
from collections.abc import Collection, Mapping

from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError


class Resource(enum.IntEnum):
    """Kinds of things that are counted against a limit."""

    CONNECTIONS = 0
    POOLS = 1
    POOL_BYTES = 2
    BUFFERS = 3
    BUFFER_BYTES = 4
    MODELS = 5
    EXECUTIONS = 6
    BURSTS = 7
    CALLS = 8
    COPY_BYTES = 9


_WORDS = {
    Resource.CONNECTIONS: "connections",
    Resource.POOLS: "pools",
    Resource.POOL_BYTES: "bytes of pools",
    Resource.BUFFERS: "buffers",
    Resource.BUFFER_BYTES: "bytes of buffers",
    Resource.MODELS: "models",
    Resource.EXECUTIONS: "executions",
    Resource.BURSTS: "bursts",
    Resource.CALLS: "calls under way",
    Resource.COPY_BYTES: "bytes of copies for models",
}

Limits = Mapping[Resource, int]


class Account:
    """Amounts used of each resource; 0 <= used <= limit, in this account and those above it.

    May be used from several threads.
    """

    def __init__(self, limits: Limits, above: "Account | None" = None) -> None:
        """Create an account; each charge goes to `above`, the user's of a connection, as well."""
        self._limits = limits
        self._above = above
        self._lock: threading.Lock = threading.Lock() if above is None else above._lock
        self.used = dict.fromkeys(Resource, 0)

    def room(self, resource: Resource) -> int:
        """Return how much more may be charged."""
        return min(each._limits[resource] - each.used[resource] for each in self._chain())

    def charge(self, resource: Resource, amount: int = 1) -> None:
        """Charge an amount, or nothing if it does not fit.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_PERSISTENT if the amount alone exceeds the limit,
            RESOURCE_EXHAUSTED_TRANSIENT if it does together with what is used.
        """
        with self._lock:
            room = self.room(resource)
            if amount <= room:
                self._add(resource, amount)
                return
        raise self._refusal(resource, amount, room)

    def _refusal(self, resource: Resource, amount: int, room: int) -> DriverError:
        limit = self.limit(resource)
        if amount > limit:
            return DriverError(
                f"{amount} {_WORDS[resource]} were asked for; the limit is {limit}.",
                status=ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
            )
        return DriverError(
            f"{amount} {_WORDS[resource]} were asked for; {room} of {limit} are left. "
            "Release some first.",
            status=ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
        )

    def refund(self, resource: Resource, amount: int = 1) -> None:
        """Return an amount that was charged."""
        with self._lock:
            self._add(resource, -amount)

    def limit(self, resource: Resource) -> int:
        """Return how much may be charged while nothing is used."""
        return min(each._limits[resource] for each in self._chain())

    def _chain(self) -> "tuple[Account, ...]":
        """Return this account and those above it; an attribute would be a reference cycle."""
        return (self,) if self._above is None else (self, *self._above._chain())

    def _add(self, resource: Resource, amount: int) -> None:
        for each in self._chain():
            each.used[resource] += amount
            assert each.used[resource] >= 0, (resource, each.used)


class Accounts:
    """Accounts of users, shared by all endpoints of a driver. May be used from several threads.

    Attributes:
        users: Accounts that are in use or kept, by user number.
    """

    def __init__(self, limits: Limits, kept: Collection[int] = ()) -> None:
        """Create an empty table; accounts of `kept` users are never forgotten."""
        self._limits = limits
        self._lock = threading.Lock()
        self._kept = frozenset(kept)
        self.users: dict[int, Account] = {}

    def of(self, user: int) -> Account:
        """Return the account of a user."""
        with self._lock:
            found = self.users.get(user)
            if found is None:
                found = self.users[user] = Account(self._limits)
            return found

    def forget_unused(self) -> None:
        """Forget accounts that hold nothing. No connection may be created meanwhile."""
        with self._lock:
            for user, account in list(self.users.items()):
                if user not in self._kept and not any(account.used.values()):
                    del self.users[user]


LINES_MAX = 20
"""Refusals logged for each client; further ones are only counted."""
