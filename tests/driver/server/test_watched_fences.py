"""Fences are watched until they change."""

import os
import selectors

from tightship.driver.server.watched_fences import WatchedFences
from tightship.driver.service.events import FenceChanged


def test_a_fence_that_is_pending_is_watched_on():
    """The pending fence has the descriptor of an earlier fence, which was signalled and closed."""
    with selectors.DefaultSelector() as selector:
        fences = WatchedFences(selector)
        read_end, write_end = os.pipe()
        assert fences.changed(read_end) is None
        fences.watch(read_end)
        assert fences.changed(read_end) is None
        os.write(write_end, b"\0")
        assert [key.fd for key, _ in selector.select(30)] == [read_end]
        assert fences.changed(read_end) == FenceChanged(read_end, is_ok=True)
        assert not selector.get_map()
        fences.forget(read_end)
        os.close(read_end)
        os.close(write_end)


def test_a_fence_whose_other_end_closes_has_failed():
    with selectors.DefaultSelector() as selector:
        fences = WatchedFences(selector)
        read_end, write_end = os.pipe()
        fences.watch(read_end)
        os.close(write_end)
        assert fences.changed(read_end) == FenceChanged(read_end, is_ok=False)
        os.close(read_end)
