"""No test asserts how long anything takes, so neither does Hypothesis."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
