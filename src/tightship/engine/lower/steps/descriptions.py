"""Primitives and layouts described once for all nodes that are alike, as layers are."""

from collections.abc import Callable, Hashable

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.lower.steps.layouts import row_major
from tightship.graph import DType


class Descriptions:
    """What has been described so far, by what it depends on."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PrimitiveDesc | None] = {}
        self._row_major: dict[tuple[DType, tuple[int, ...]], MemoryDesc] = {}

    def once(
        self, key: Hashable, describe: Callable[[], PrimitiveDesc | None]
    ) -> PrimitiveDesc | None:
        """What `describe` gives, called once for all of an equal key."""
        if key not in self._known:
            self._known[key] = describe()
        return self._known[key]

    def row_major(self, shape: tuple[int, ...], dtype: DType = DType.FLOAT32) -> MemoryDesc:
        """The row-major layout of a shape."""
        found = self._row_major.get((dtype, shape))
        if found is None:
            found = self._row_major[dtype, shape] = row_major(shape, dtype)
        return found
