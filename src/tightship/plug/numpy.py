"""Lets NumPy allocate from a memory resource (NEP 49)."""

from contextlib import AbstractContextManager

from tightship._core import MemoryResource, NumpyScope, NumpyThreadsScope
from tightship.public_calls import public_call
from tightship.resource.current import current_resource

__all__ = ["use"]


@public_call
def use(
    resource: MemoryResource | None = None, *, every_thread: bool = False
) -> AbstractContextManager[None]:
    """Allocate the arrays that are made within the statement from `resource`, 64-byte aligned.

    An array keeps alive the resource that it was made with. The scope belongs to the calling
    context, or with `every_thread` to all threads of the process, also those that run already.
    Scopes of several resources nest. Each block takes 64 bytes more than its array, for the size.
    NumPy raises MemoryError if the resource refuses. Zeroed arrays are written to, unlike NumPy's
    own large ones, whose pages the system fills on first use.

    Args:
        resource: Resource that provides the memory; None takes `current_resource()`. If it does not
            take blocks back, memory of every array stays allocated.
        every_thread: Serve every thread but those in a scope of their own. The scope entered last
            counts, whichever thread entered it; scopes may end in any order. After the first such
            scope, NumPy's own allocator is reached through this one for good.
    """
    chosen = current_resource() if resource is None else resource
    scope: AbstractContextManager[None] = (
        NumpyThreadsScope(chosen) if every_thread else NumpyScope(chosen)
    )
    return scope
