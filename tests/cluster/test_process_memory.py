"""The limit of a process's writable memory, set while other threads start."""

import subprocess
import sys

LIMITED = """
import threading

from tightship.cluster.process_memory import data_bytes, limit_data

before = data_bytes()
wait = threading.Event()
thread = threading.Thread(target=wait.wait)
thread.start()  # as threads of Ray do at any moment
assert data_bytes() > before
print(limit_data(before, 64 << 20) - before)
wait.set()
thread.join()
"""


def test_a_limit_counts_from_the_reading_that_is_reported():
    ran = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, check=True)
    assert int(ran.stdout) == 64 << 20
