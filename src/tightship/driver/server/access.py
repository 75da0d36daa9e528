"""Who may connect to a driver, and which files it believes in."""

import os
from dataclasses import dataclass, field

from tightship.driver.memory.trusted import Trusted
from tightship.driver.types.quota import Accounts


def own_users() -> frozenset[int]:
    """This process's user, and root."""
    return frozenset({os.geteuid(), 0})


@dataclass(frozen=True, slots=True)
class Access:
    """What is granted beyond the driver's own user, and root.

    Attributes:
        users: Others that may connect; they may not ask who holds what.
        files: Folders whose files are mapped without being sealed.
        accounts: What users have through other faces as well; None for accounts of its own.
    """

    users: frozenset[int] = frozenset()
    files: Trusted = field(default_factory=Trusted)
    accounts: Accounts | None = None

    def admits(self, user: int) -> bool:
        """Whether a user may connect."""
        return user in own_users() or user in self.users
