"""Objects that Python functions returned, and that refer to the resource, are collected with it."""

import gc
import weakref

import pytest

from tests.resource.virtual.file_pair import Addresses, Part
from tightship.resource.virtual import (
    FailingDevice,
    HostDevice,
    PythonDevice,
    PythonStream,
    virtual_resource,
)

PAGE = 1 << 16
POLICIES = ("stealing", "chunked")


class Owner:
    """Object that has a resource, and that objects returned by its functions refer to."""

    def __init__(self):
        self.held = None


def referring(kind, owner):
    """A class of which each object refers to `owner`, and needs that to be of use."""

    class Referring(kind):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.owner = owner

        def unmap(self, *arguments):
            assert self.owner is not None
            return super().unmap(*arguments)

    return Referring


class Fence:
    """A fence behind work that never ends, as long as its owner is whole."""

    def __init__(self, owner):
        self.owner = owner

    def is_signalled(self):
        assert self.owner is not None
        return False


def parts(owner):
    return PythonDevice(referring(Part, owner), Addresses, maps_twice=True)


def addresses(owner):
    return PythonDevice(Part, referring(Addresses, owner), maps_twice=True)


DEVICES = {
    "parts": parts,
    "addresses": addresses,
    "failing": lambda owner: FailingDevice(addresses(owner), 0, 0),
}
GLOBAL = {}
"""A device that outlives resources, by the kind of object it makes; `GLOBAL["owner"]` is theirs."""


def of_long_life(kind):
    class Late(kind):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.owner = GLOBAL["owner"]

    others = {Part: Part, Addresses: Addresses, kind: Late}
    return PythonDevice(others[Part], others[Addresses], maps_twice=True)


def used(resource, stream=None):
    address = resource.allocate_on(PAGE, stream)
    resource.deallocate_on(address, PAGE, stream)
    return resource


def seen_of(device, policy, stream=None):
    owner = GLOBAL["owner"] = Owner()
    owner.held = virtual_resource(device(owner), policy=policy, page_bytes=PAGE)
    owner.block = owner.held.allocate(PAGE)
    used(owner.held, stream(owner) if stream is not None else None)
    del GLOBAL["owner"]
    return weakref.ref(owner)


def assert_collected(seen, capfd):
    gc.collect()
    assert [each for each in seen if each() is not None] == []
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", DEVICES)
def test_what_a_device_returned_is_collected(kind, policy, capfd):
    assert_collected([seen_of(DEVICES[kind], policy) for _ in range(50)], capfd)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", [Part, Addresses])
def test_so_is_what_a_device_of_long_life_returned(kind, policy, capfd):
    device = of_long_life(kind)
    assert_collected([seen_of(lambda _: device, policy) for _ in range(50)], capfd)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_stream_returned_is_collected(policy, capfd):
    def stream(owner):
        return PythonStream(lambda: Fence(owner))

    assert_collected([seen_of(lambda _: HostDevice(), policy, stream) for _ in range(50)], capfd)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", DEVICES)
def test_what_is_in_use_stays(kind, policy):
    owner = Owner()
    device = DEVICES[kind](owner)
    resources = [virtual_resource(device, policy=policy, page_bytes=PAGE) for _ in range(2)]
    for resource in resources:
        used(resource)
    gone = [resources.pop()]
    gone.append(gone)
    del gone
    for _ in range(3):
        gc.collect()
        used(resources[0])
        resources[0].trim()
