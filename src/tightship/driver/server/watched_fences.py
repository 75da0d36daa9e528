"""Fences that executions wait for, among the descriptors that a server selects."""

import selectors

from tightship.driver.memory.descriptor import fence_state
from tightship.driver.service.events import FenceChanged
from tightship.driver.types.attachment import FenceState


class WatchedFences:
    """Descriptors of fences in a selector, until they change or are closed."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._files = set[int]()

    def watch(self, file: int) -> None:
        """Have the selector report a fence."""
        self._files.add(file)
        self._selector.register(file, selectors.EVENT_READ)

    def forget(self, file: int) -> None:
        """Watch a descriptor no longer, if it is watched; called before it is closed."""
        if file in self._files:
            self._files.remove(file)
            self._selector.unregister(file)

    def changed(self, file: int) -> FenceChanged | None:
        """Return the change of a fence that the selector reported, and watch it no longer.

        Returns:
            None for other descriptors, and where the report was about an earlier fence with the
            same number.
        """
        if file not in self._files or (state := fence_state(file)) is FenceState.PENDING:
            return None
        self.forget(file)
        return FenceChanged(file, state is FenceState.SIGNALLED)
