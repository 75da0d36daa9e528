"""Reconstructs layouts, primitives and kernels from the recipes of a file."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, overload

from tightship._core import (
    MemoryDesc,
    NativeKernel,
    OneDnnError,
    PrimitiveDesc,
    RecipeError,
)
from tightship.engine.stored import fields
from tightship.engine.stored.container import Container
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.read_program import ARGUMENT_MAX, Made
from tightship.errors import FormatError

OF_PRIMITIVE = "of_primitive"
"""First element of the row of a layout that is taken from a primitive."""

SKIPPED_MAX = 64

Result = TypeVar("Result")


class Recipes(Sequence[Result]):
    """Objects that recipes describe, each reconstructed when it is first used.

    Reading one raises:

    Raises:
        FormatError: Its recipe is outside the section.
        MalformedError: Its recipe cannot be followed here, or yields another implementation.
    """

    def __init__(self, rows: Sequence[object], make: Callable[[object], Result]) -> None:
        self._rows, self._make = rows, make
        self._made: dict[int, Result] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Result: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Result]: ...
    def __getitem__(self, place: int | slice) -> Result | Sequence[Result]:
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        if place not in self._made:
            self._made[place] = self._followed(place)
        return self._made[place]

    def _followed(self, place: int) -> Result:
        try:
            return self._make(self._rows[place])
        except (RecipeError, OneDnnError, ValueError, IndexError) as error:
            if isinstance(error, FormatError | MalformedError):
                raise
            raise MalformedError(f"a recipe cannot be followed: {error}") from None


def reconstruct(container: Container, recipes: Sequence[Sequence[object]]) -> Made:
    """Return the layouts, primitives and kernels of a file, which are made as they are used."""
    layouts, primitives, kernels = recipes
    made = Recipes(primitives, partial(_primitive, container))
    return Made(
        Recipes(layouts, lambda row: _layout(container, row, made)),
        made,
        Recipes(kernels, partial(_kernel, container)),
    )


def _bytes(container: Container, row: object, count: int) -> bytes:
    start, size = fields.items(row, count)[:2]
    return container.recipe(fields.integer(start), fields.integer(size))


def _layout(container: Container, row: object, made: Sequence[PrimitiveDesc]) -> MemoryDesc:
    first, *rest = fields.items(row)
    if first == OF_PRIMITIVE:
        primitive, argument = fields.items(rest, 2)
        number = fields.integer(argument, 1, ARGUMENT_MAX)
        desc = made[fields.index(primitive, len(made))].operand(number)
    else:
        desc = MemoryDesc.of_recipe(_bytes(container, row, 2))
    if desc.end_bytes <= 0:
        raise MalformedError("a layout leaves open how it lies")
    return desc


def _primitive(container: Container, row: object) -> PrimitiveDesc:
    desc = PrimitiveDesc.of_recipe(_bytes(container, row, 4))
    _, _, skipped, implementation = fields.items(row, 4)
    for _ in range(fields.integer(skipped, 0, SKIPPED_MAX)):
        if not desc.next_implementation():
            break
    if desc.implementation != fields.text(implementation):
        raise MalformedError(
            f"the library chooses {desc.implementation} here, where it chose "
            f"{fields.text(implementation):.60}"
        )
    return desc


def _kernel(container: Container, row: object) -> NativeKernel:
    kernel = NativeKernel.of_recipe(_bytes(container, row, 2))
    if kernel is None:
        raise MalformedError("a recipe names an unknown kernel")
    return kernel
