"""Users who may connect to a driver, and folders that it trusts."""

import os
from dataclasses import dataclass, field

from tightship.driver.memory.trusted import Trusted
from tightship.driver.types.quota import Accounts


def own_users() -> frozenset[int]:
    """Return this process's user and root."""
    return frozenset({os.geteuid(), 0})


@dataclass(frozen=True, slots=True)
class Access:
    """Rights granted beyond those of the driver's own user and root.

    Attributes:
        users: Other users that may connect; they may not request snapshots.
        files: Folders whose files are mapped without seals.
        accounts: Accounts shared with other endpoints; None for accounts of its own.
    """

    users: frozenset[int] = frozenset()
    files: Trusted = field(default_factory=Trusted)
    accounts: Accounts | None = None

    def admits(self, user: int) -> bool:
        """Whether a user may connect."""
        return user in own_users() or user in self.users


NO_ACCESS = Access()
"""Grants nothing beyond."""
