"""Functions for replicas, in a module that imports little: a replica has no room for much."""

import os
import threading

import numpy as np

TOO_MUCH_BYTES = 200 << 20


def too_much(model):
    """Allocate what no plan has."""
    return np.ones(TOO_MUCH_BYTES, np.uint8).sum() + len(model.input_names)


def end_process(_model):
    """End the process as an allocation in code that cannot raise does."""
    os.abort()


def start_threads(_model, count):
    """Run threads at once, as Ray starts some of its own while calls come."""
    together = threading.Barrier(count + 1)
    threads = [threading.Thread(target=together.wait) for _ in range(count)]
    for thread in threads:
        thread.start()
    together.wait()
    for thread in threads:
        thread.join()
    return count
