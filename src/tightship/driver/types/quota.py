"""How much a connection, and a user with all of his, may have at once."""

import enum
import threading
from collections.abc import Collection, Mapping

from tightship.driver.types.status import ErrorStatus
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
    """What is used, and how much may be; 0 <= used <= limit, here and in the account above.

    May be used from several threads.
    """

    def __init__(self, limits: Limits, above: "Account | None" = None) -> None:
        """`above` is charged along: the user of a connection."""
        self._limits = limits
        self._above = above
        self._lock: threading.Lock = threading.Lock() if above is None else above._lock
        self.used = dict.fromkeys(Resource, 0)

    def room(self, resource: Resource) -> int:
        """How much more may be charged."""
        return min(each._limits[resource] - each.used[resource] for each in self._chain())

    def charge(self, resource: Resource, amount: int = 1) -> None:
        """Take some.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_PERSISTENT if it is more than the limit by itself,
                RESOURCE_EXHAUSTED_TRANSIENT if it would be with what is used. Nothing is taken.
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
            "Give some back first.",
            status=ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
        )

    def refund(self, resource: Resource, amount: int = 1) -> None:
        """Give some back."""
        with self._lock:
            self._add(resource, -amount)

    def limit(self, resource: Resource) -> int:
        """How much may be charged when nothing is used."""
        return min(each._limits[resource] for each in self._chain())

    def _chain(self) -> "tuple[Account, ...]":
        """This account and that above it; not an attribute, which would be a reference cycle."""
        return (self,) if self._above is None else (self, *self._above._chain())

    def _add(self, resource: Resource, amount: int) -> None:
        for each in self._chain():
            each.used[resource] += amount
            assert each.used[resource] >= 0, (resource, each.used)


class Accounts:
    """The accounts of users, one for all faces of a driver. May be used from several threads.

    Attributes:
        users: Those that have something, or are kept, by number.
    """

    def __init__(self, limits: Limits, kept: Collection[int] = ()) -> None:
        """`kept` are users whose account others hold as well: it is never made anew."""
        self._limits = limits
        self._lock = threading.Lock()
        self._kept = frozenset(kept)
        self.users: dict[int, Account] = {}

    def of(self, user: int) -> Account:
        """The account of a user."""
        with self._lock:
            found = self.users.get(user)
            if found is None:
                found = self.users[user] = Account(self._limits)
            return found

    def forget_unused(self) -> None:
        """Forget users that have nothing; no new connection of theirs is being made."""
        with self._lock:
            for user, account in list(self.users.items()):
                if user not in self._kept and not any(account.used.values()):
                    del self.users[user]


LINES_MAX = 20
"""Refusals of one client that are logged; the rest is counted."""
