"""A driver in a process of its own, started from the command line, and what it has open."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tightship.driver.client.client import Client

COMMAND = (sys.executable, "-m", "tightship.cli", "serve")
PATIENCE_S = 30
STEADY = 30


class Driver:
    """A process that listens at `path`."""

    def __init__(self, folder, *models):
        self.path = folder / "driver.sock"
        self.process = subprocess.Popen(
            [*COMMAND, *models, "--socket", self.path, "--threads", "2"],
            stdout=subprocess.PIPE,
            env={**os.environ, "XDG_CACHE_HOME": str(folder)},
        )
        assert b"serving" in self.process.stdout.readline()

    def client(self):
        return Client(self.path)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def mappings(self):
        """Lines of the memory map that are files of clients."""
        lines = Path(f"/proc/{self.process.pid}/maps").read_text().splitlines()
        return sum("memfd:" in line for line in lines)

    def settled_state(self, client):
        """The state once what was given back before is gone: nothing changes for many calls."""
        state, unchanged = self.state(), 0
        while unchanged < STEADY:
            client.capabilities()
            before, state = state, self.state()
            unchanged = unchanged + 1 if state == before else 0
        return state

    def state(self):
        return self.open_files(), self.mappings()

    def settles_at(self, state, witness):
        """Return whether the driver comes back to a state, or holds less, while a witness calls it.

        It may hold less, because resources that were about to be freed when the state was taken
        are counted in it.
        """
        stop = time.monotonic() + PATIENCE_S
        while not self.has_no_more_than(state) and time.monotonic() < stop:
            witness.capabilities()
        return self.has_no_more_than(state)

    def has_no_more_than(self, state):
        return all(now <= then for now, then in zip(self.state(), state, strict=True))


@contextmanager
def driver(folder, *models):
    running = Driver(folder, *models)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        running.process.stdout.close()
