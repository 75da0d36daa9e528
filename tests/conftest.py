"""No test asserts how long anything takes, so neither does Hypothesis; nor does it cast dice.

Each run tries the same examples; `--hypothesis-profile searching` tries others every time.
"""

import os
import signal

from hypothesis import HealthCheck, settings

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("searching", UNTIMED)
settings.register_profile("repeated", UNTIMED, derandomize=True)
settings.load_profile("repeated")

# A failing test shows where in the package it failed.
os.environ.setdefault("TIGHTSHIP_TRACEBACK", "full")

# A shell that starts the tests in the background may ignore interrupts; processes that tests start
# and interrupt must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
