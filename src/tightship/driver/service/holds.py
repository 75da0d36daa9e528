"""Who needs a thing, and what happens once nobody does."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tightship.driver.service.effects import Effect
from tightship.driver.types.quota import Account, Resource


@dataclass(slots=True, eq=False)
class Held:
    """A thing that is there while somebody holds it.

    Attributes:
        ending: What the rim does once nobody does.
        beneath: What the thing holds itself.
        charges: What it takes of its owner's account.
        count: How many hold it: its registration, and what uses it.
    """

    account: Account
    ending: Effect | None = None
    beneath: tuple["Held", ...] = ()
    charges: dict[Resource, int] = field(default_factory=dict)
    count: int = 1

    def charge(self, resource: Resource, amount: int = 1) -> None:
        """Take some of the account until the thing is gone.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_TRANSIENT or RESOURCE_EXHAUSTED_PERSISTENT.
        """
        self.account.charge(resource, amount)
        self.charges[resource] = self.charges.get(resource, 0) + amount

    def hold(self) -> "Held":
        """Somebody else needs it as well."""
        assert self.count > 0
        self.count += 1
        return self

    def let_go(self, emit: Callable[[Effect], None]) -> None:
        """Somebody needs it no more."""
        assert self.count > 0
        self.count -= 1
        if self.count:
            return
        for resource, amount in self.charges.items():
            self.account.refund(resource, amount)
        if self.ending is not None:
            emit(self.ending)
        for held in self.beneath:
            held.let_go(emit)
