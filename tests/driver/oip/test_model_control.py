"""Models to load at the start, and the thread that looks for changes."""

import logging
import threading

from tightship.driver.oip.model_control import ALL, FREE_CONTROL, ModelControl, Poller
from tightship.driver.oip.refusal import OipError


def test_all_models_or_those_named_are_loaded_at_the_start():
    assert FREE_CONTROL.chosen(("a", "b")) == ("a", "b")
    assert ModelControl(("b", ALL)).chosen(("a", "b")) == ("a", "b")
    assert ModelControl(("b", "c")).chosen(("a", "b")) == ("b", "c")
    assert ModelControl(()).chosen(("a",)) == ()


class Repository:
    """Fails to be listed twice, then fails to load a model, then has no failures."""

    def __init__(self):
        self.left = [None, None, [OipError("failed to load 'm'")], []]
        self.is_done = threading.Event()

    def poll(self):
        if len(self.left) == 1:
            self.is_done.set()
            return self.left[0]
        found = self.left.pop(0)
        if found is None:
            raise OipError("failed to poll\x00")
        return found


def test_failures_are_logged_and_the_looking_goes_on(caplog):
    repository = Repository()
    poller = Poller(repository, 0.001)
    with caplog.at_level(logging.ERROR):
        poller.start()
        assert repository.is_done.wait(20)
        poller.stop()
    assert caplog.messages == ["failed to poll?", "failed to load 'm'"]
