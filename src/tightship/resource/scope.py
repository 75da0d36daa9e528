"""Blocks that end with a `with` statement."""

from collections.abc import Iterator
from contextlib import contextmanager

from tightship._core import BumpResource
from tightship.errors import InputTypeError


@contextmanager
def scope(bump: BumpResource) -> Iterator[BumpResource]:
    """Free every block that `bump` gives within the statement at its end; scopes nest.

    No other thread may be allocating from it when the statement begins or ends.

    Raises:
        InputTypeError: The resource is of another kind.
    """
    if not isinstance(bump, BumpResource):
        raise InputTypeError(f"`bump` is {bump!r}; give a `BumpResource`.")
    mark = bump.mark()
    try:
        yield bump
    finally:
        bump.rewind(mark)
