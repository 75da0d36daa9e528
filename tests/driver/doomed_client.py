"""A client with much memory in a driver, which then waits to be killed.

Usage: `python -m tests.driver.doomed_client SOCKET FENCE`; FENCE is a pipe that is never signalled.
"""

import signal
import sys

import numpy as np

from tests.small_models import relu_chain
from tightship.driver.client.client import Client
from tightship.driver.client.fence import Fence

SIDE = 4 << 20
VALUE_BYTES = 4 * SIDE


def main():
    path, fence = sys.argv[1], Fence(int(sys.argv[2]))
    client = Client(path)
    model = client.prepare(relu_chain(1, SIDE))
    segment = client.segment(2 * VALUE_BYTES)
    ends = [segment.place((1, SIDE), "f4")], [segment.place((1, SIDE), "f4")]
    ends[0][0].array[...] = 1
    model.execute(*ends)
    buffer = client.allocate(inputs=[(model, 0)])
    buffer.copy_from(np.ones((1, SIDE), np.float32))
    model.execute_fenced(*ends, wait_for=[fence])
    print("ready", flush=True)  # noqa: T201
    signal.pause()


if __name__ == "__main__":
    main()
