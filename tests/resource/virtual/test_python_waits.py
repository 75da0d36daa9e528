"""Threads of Python that wait for a pool, while it waits for work that needs Python."""

import subprocess
import sys

PROGRAM = """
import threading
from tightship.resource.virtual import HostDevice, PythonStream
from tightship.resource.virtual import StealingVirtualResource

class Fence:
    looks, begun = 0, threading.Event()
    def is_signalled(self):
        self.looks += 1
        if self.looks > 5:
            self.begun.set()
        return self.looks > 500

fence = Fence()
stream = PythonStream(lambda: None if fence.looks > 500 else fence)
pool = StealingVirtualResource(HostDevice(), page_bytes=1 << 14, patience_s=60)
address = pool.allocate_on(1 << 16, stream)
pool.deallocate_on(address, 1 << 16, stream)
waiting = threading.Thread(target=pool.allocate, args=(1 << 16,))
waiting.start()
fence.begun.wait()
pool.allocate(1 << 16)
waiting.join()
print("fine")
del pool, stream
"""


def test_who_waits_for_the_pool_lets_the_work_end():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")
