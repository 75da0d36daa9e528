"""No test asserts how long anything takes, so neither does Hypothesis."""

import signal

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# Whoever starts the tests in the background may have interrupts ignored; processes that tests start
# and interrupt must not inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
