"""Recipes of layouts, primitives and kernels, each written once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tightship._core import MemoryDesc, NativeKernel, PrimitiveDesc, record_recipes
from tightship.engine.stored.reconstruct import OF_PRIMITIVE
from tightship.errors import InputError


@contextmanager
def recording() -> Iterator[None]:
    """Record recipes of what is lowered within the block."""
    was = record_recipes(wanted=True)
    try:
        yield
    finally:
        record_recipes(wanted=was)


@dataclass(slots=True)
class RecipeWriter:
    """Recipes written so far; `layouts`, `primitives` and `kernels` give their positions.

    The row of a layout or kernel is a start and a size; that of a primitive adds how many
    implementations are skipped, and the name of the one reached. A layout without a recipe is given
    by a primitive and the argument that has it.
    """

    content: bytearray = field(default_factory=bytearray)
    layouts: list[list[object]] = field(default_factory=list)
    primitives: list[list[object]] = field(default_factory=list)
    kernels: list[list[object]] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)
    _made: dict[int, PrimitiveDesc] = field(default_factory=dict)

    def layout(self, desc: MemoryDesc | None) -> int:
        """Return the index of a layout; -1 for none.

        Raises:
            InputError: The layout has no recipe, and no primitive written before has it.
        """
        if desc is None:
            return -1
        recipe = desc.recipe
        return self._place(self.layouts, recipe, f"layout {desc!r}") if recipe else self._of(desc)

    def primitive(self, desc: PrimitiveDesc) -> int:
        """Return the index of a primitive.

        Raises:
            InputError: The primitive has no recipe.
        """
        said = desc.skipped, desc.implementation
        place = self._place(self.primitives, desc.recipe, f"primitive {desc.implementation}", *said)
        self._made.setdefault(place, desc)
        return place

    def kernel(self, kernel: NativeKernel, name: str) -> int:
        """Return the index of a kernel.

        Raises:
            InputError: The kernel has no recipe.
        """
        return self._place(self.kernels, kernel.recipe, f"kernel {name}")

    def text(self, content: bytes) -> list[int]:
        """Write the text of a program among the recipes; return its start and size."""
        self.content += content
        return [len(self.content) - len(content), len(content)]

    def _of(self, desc: MemoryDesc) -> int:
        """Return the index of a layout that a primitive written before has, the last one first."""
        for primitive, made in reversed(self._made.items()):
            for argument, _ in made.reach():
                if made.operand(argument) == desc:
                    row: list[object] = [OF_PRIMITIVE, primitive, argument]
                    if row not in self.layouts:
                        self.layouts.append(row)
                    return self.layouts.index(row)
        return self._place(self.layouts, b"", f"layout {desc!r}")

    def _place(self, table: list[list[object]], recipe: bytes, what: str, *more: object) -> int:
        if not recipe:
            raise InputError(
                f"The {what} cannot be written into a prepared model. Load the ONNX file instead."
            )
        key = id(table), recipe, more
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(table)
            table.append([len(self.content), len(recipe), *more])
            self.content += recipe
        return place
