"""A driver in a process of its own, started from the command line, and what it has open."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tightship.driver.client.client import Client
from tightship.driver.memory.isolated_worker import STAGING_BYTES

COMMAND = (sys.executable, "-m", "tightship.cli", "serve")
PATIENCE_S = 30
STAGING_FILES = 2
"""Descriptors that the driver has of an isolated process: a connection, and the staging memory."""
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
        """Descriptors, without those for processes that map files of clients, which it keeps."""
        found = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        return found - STAGING_FILES * self._mapped().count(STAGING_BYTES)

    def mappings(self):
        """Mappings that are files of clients."""
        return sum(size != STAGING_BYTES for size in self._mapped())

    def _mapped(self):
        """Sizes of the mappings without a name in the file system."""
        lines = Path(f"/proc/{self.process.pid}/maps").read_text().splitlines()
        ranges = [line.split(maxsplit=1)[0].split("-") for line in lines if "memfd:" in line]
        return [int(stop, 16) - int(start, 16) for start, stop in ranges]

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
