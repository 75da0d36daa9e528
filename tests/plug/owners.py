"""Objects that have a scope of NumPy's arrays, and that the functions of its resource refer to."""

import weakref

import numpy as np

from tightship.plug.numpy import use
from tightship.resource import CallbackResource, HostResource


class Owner:
    """Object that has a scope; `options` are those of `use`."""

    def __init__(self, **options):
        self.host = HostResource()
        self.scope = use(CallbackResource(self.allocate, self.deallocate), **options)

    def allocate(self, size, alignment):
        return self.host.allocate(size, alignment)

    def deallocate(self, address, size, alignment):
        self.host.deallocate(address, size, alignment)


def owner_of_scope(*, is_used, **options):
    """Make an owner, use its scope or not, and return a reference that does not keep it."""
    owner = Owner(**options)
    if is_used:
        with owner.scope:
            np.empty(1 << 12, "u1")
    return weakref.ref(owner)
