"""Lets NumPy allocate from a memory resource (NEP 49)."""

from contextlib import AbstractContextManager

from tightship._core import MemoryResource, NumpyScope
from tightship.public_calls import public_call

__all__ = ["use"]


@public_call
def use(resource: MemoryResource) -> AbstractContextManager[None]:
    """Allocate the arrays that are made within the statement from `resource`, 64-byte aligned.

    An array keeps alive the resource that it was made with. The scope belongs to the calling
    context: other threads and tasks are outside of it. Scopes of several resources nest. Each block
    takes 64 bytes more than its array, for the size. NumPy raises MemoryError if the resource
    refuses. Zeroed arrays are written to, unlike NumPy's own large ones, whose pages the system
    fills on first use.

    Args:
        resource: Resource that provides the memory. If it does not take blocks back, memory of
            every array stays allocated.
    """
    scope: AbstractContextManager[None] = NumpyScope(resource)
    return scope
