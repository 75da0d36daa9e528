"""Memory resources that are written in Python."""

from weakref import ref

from tightship._core import CallbackResource


class PythonResource(CallbackResource):
    """Base of resources whose blocks a class of Python allocates and frees.

    Derive from it, and define `do_allocate` and `do_deallocate`; a constructor calls
    `super().__init__()`. Sizes, addresses and double frees are checked before `do_deallocate` is
    called.
    """

    def __init__(self) -> None:
        """Make a resource that calls the two methods."""
        # Methods themselves would refer to the resource, which could then never be collected.
        itself = ref(self)

        def allocate(size_bytes: int, alignment: int) -> int:
            return _alive(itself).do_allocate(size_bytes, alignment)

        def deallocate(address: int, size_bytes: int, alignment: int) -> None:
            _alive(itself).do_deallocate(address, size_bytes, alignment)

        super().__init__(allocate, deallocate)

    def do_allocate(self, size_bytes: int, alignment: int) -> int:
        """Return an address, or 0 to refuse; an exception refuses too, and the error quotes it.

        Args:
            size_bytes: Bytes of the block, at least 1.
            alignment: Power of two that divides the address.
        """
        raise NotImplementedError

    def do_deallocate(self, address: int, size_bytes: int, alignment: int) -> None:
        """Free a block; an exception is written to standard error.

        Args:
            address: Address that `do_allocate` returned.
            size_bytes: Bytes that it was asked for.
            alignment: Alignment that it was asked for.
        """
        raise NotImplementedError


def _alive(itself: "ref[PythonResource]") -> PythonResource:
    """Return a resource that lives, as it does while it is called or has a block."""
    found = itself()
    assert found is not None
    return found
