"""A model is closed once no request uses it any more."""

import threading

from tightship.driver.oip.model_uses import ModelUses

PATIENCE_S = 30


def test_waiting_ends_with_the_last_use_of_that_model():
    lock = threading.Lock()
    uses, order = ModelUses(lock), []

    def wait():
        with lock:
            uses.wait_until_unused("old")
            order.append("unused")

    with lock:
        for model in ("old", "old", "new"):
            uses.begin(model)
    thread = threading.Thread(target=wait)
    thread.start()
    while not uses._waiting:
        assert thread.is_alive()
    uses.end("old")
    order.append("one is left")
    thread.join(0.05)
    assert thread.is_alive()
    uses.end("old")
    thread.join(PATIENCE_S)
    assert order == ["one is left", "unused"]
    with lock:
        uses.wait_until_unused("old")  # at once
    uses.end("new")
