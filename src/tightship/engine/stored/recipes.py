"""Recipes of what the core makes, each kept once."""

from dataclasses import dataclass, field

from tightship._core import MemoryDesc, NativeKernel, PrimitiveDesc
from tightship.engine.stored.reconstruct import OF_PRIMITIVE
from tightship.errors import InputError


@dataclass(slots=True)
class RecipeWriter:
    """Recipes so far, one after another; `layouts`, `primitives` and `kernels` say where.

    A layout or a kernel is a start and a size; a primitive also says how many implementations
    are passed over, and which one is then there. A layout that only a primitive can make is the
    place of one, and the argument that lies so.
    """

    content: bytearray = field(default_factory=bytearray)
    layouts: list[list[object]] = field(default_factory=list)
    primitives: list[list[object]] = field(default_factory=list)
    kernels: list[list[object]] = field(default_factory=list)
    _known: dict[object, int] = field(default_factory=dict)
    _made: dict[int, PrimitiveDesc] = field(default_factory=dict)

    def layout(self, desc: MemoryDesc | None) -> int:
        """Place of a layout; -1 for none.

        Raises:
            InputError: It cannot be said.
        """
        if desc is None:
            return -1
        recipe = desc.recipe
        return self._place(self.layouts, recipe, f"layout {desc!r}") if recipe else self._of(desc)

    def primitive(self, desc: PrimitiveDesc) -> int:
        """Place of a primitive.

        Raises:
            InputError: As `layout`.
        """
        said = desc.skipped, desc.implementation
        place = self._place(self.primitives, desc.recipe, f"primitive {desc.implementation}", *said)
        self._made.setdefault(place, desc)
        return place

    def kernel(self, kernel: NativeKernel, name: str) -> int:
        """Place of a kernel.

        Raises:
            InputError: As `layout`.
        """
        return self._place(self.kernels, kernel.recipe, f"kernel {name}")

    def _of(self, desc: MemoryDesc) -> int:
        """Place of a layout as one of a primitive that is written already, the last first."""
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
