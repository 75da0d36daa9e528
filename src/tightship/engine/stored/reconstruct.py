"""Reconstructs layouts, primitives and kernels from the recipes of a file."""

from collections.abc import Sequence

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


def reconstruct(container: Container, recipes: Sequence[Sequence[object]]) -> Made:
    """Reconstruct layouts, primitives and kernels.

    Raises:
        FormatError: A recipe is outside the section.
        MalformedError: A recipe cannot be followed here, or yields another implementation.
    """
    layouts, primitives, kernels = recipes
    try:
        made = [_primitive(container, row) for row in primitives]
        return Made(
            [_layout(container, row, made) for row in layouts],
            made,
            [_kernel(container, row) for row in kernels],
        )
    except (RecipeError, OneDnnError, ValueError, IndexError) as error:
        if isinstance(error, FormatError):
            raise
        raise MalformedError(f"a recipe cannot be followed: {error}") from None


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
