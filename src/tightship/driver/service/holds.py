"""Reference counts that free a thing, and its charges, with the last reference."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.driver.service.effects import Effect
from tightship.driver.types.quota import Account, Resource


@dataclass(slots=True, eq=False)
class RefCounted:
    """Reference count of a thing.

    Attributes:
        ending: Effect that frees it.
        beneath: References of its own, released with it.
        charges: Amounts charged to its owner's account.
        count: References: its registration and its users.
    """

    account: Account
    ending: Effect | None = None
    beneath: tuple["RefCounted", ...] = ()
    charges: dict[Resource, int] = field(default_factory=dict)
    count: int = 1

    def charge(self, resource: Resource, amount: int = 1) -> None:
        """Charge an amount to the account until the thing is freed.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_TRANSIENT or RESOURCE_EXHAUSTED_PERSISTENT.
        """
        self.account.charge(resource, amount)
        self.charges[resource] = self.charges.get(resource, 0) + amount

    def hold(self) -> "RefCounted":
        """Add a reference."""
        assert self.count > 0
        self.count += 1
        return self

    def release(self, emit: Callable[[Effect], None]) -> None:
        """Release a reference."""
        assert self.count > 0
        self.count -= 1
        if self.count:
            return
        for resource, amount in self.charges.items():
            self.account.refund(resource, amount)
        if self.ending is not None:
            emit(self.ending)
        for held in self.beneath:
            held.release(emit)
