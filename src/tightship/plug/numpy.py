"""Our memory beneath NumPy (NEP 49)."""

from contextlib import AbstractContextManager

from tightship._core import MemoryResource, NumpyScope


def use(resource: MemoryResource) -> AbstractContextManager[None]:
    """Arrays made within the statement are blocks of `resource`, at multiples of 64 bytes.

    An array keeps the resource that it was made with, and keeps it alive. The scope is of the
    calling context: other threads and tasks are not in it. Scopes of several resources nest. Each
    block takes 64 bytes more than the array, for its size; NumPy raises MemoryError where the
    resource refuses. Zeroed arrays are written to, unlike NumPy's own large ones.

    Args:
        resource: Where arrays come from. Of one that takes no block back, every array stays.
    """
    scope: AbstractContextManager[None] = NumpyScope(resource)
    return scope
