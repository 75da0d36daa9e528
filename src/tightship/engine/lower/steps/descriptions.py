"""Cache of primitive and layout descriptions, shared by equal nodes such as repeated layers."""

from collections.abc import Callable, Hashable

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.lower.steps.layouts import row_major
from tightship.graph import DType


class Descriptions:
    """Descriptions made so far, by key."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PrimitiveDesc | None] = {}
        self._row_major: dict[tuple[DType, tuple[int, ...]], MemoryDesc] = {}

    def once(
        self, key: Hashable, describe: Callable[[], PrimitiveDesc | None]
    ) -> PrimitiveDesc | None:
        """Return the result of `describe`, which is called once for each key."""
        if key not in self._known:
            self._known[key] = describe()
        return self._known[key]

    def row_major(self, shape: tuple[int, ...], dtype: DType = DType.FLOAT32) -> MemoryDesc:
        """Return the row-major layout of a shape."""
        found = self._row_major.get((dtype, shape))
        if found is None:
            found = self._row_major[dtype, shape] = row_major(shape, dtype)
        return found
