"""Primitives described once for all nodes that are alike, as the layers of a network are."""

from collections.abc import Callable, Hashable

from tightship._core import PrimitiveDesc


class Descriptions:
    """What has been described so far, by what it depends on."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PrimitiveDesc | None] = {}

    def once(
        self, key: Hashable, describe: Callable[[], PrimitiveDesc | None]
    ) -> PrimitiveDesc | None:
        """What `describe` gives, called once for all of an equal key."""
        if key not in self._known:
            self._known[key] = describe()
        return self._known[key]
