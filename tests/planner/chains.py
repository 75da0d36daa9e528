"""Chains of steps and their way back, which reads what every step has written."""

from tightship.planner import Alias, AliasKind, Schedule, ScheduledValue, Step


def chain(length, cheap=10, dear=1000):
    """A forward chain whose every value the way back reads; every other step is dear."""
    values = [ScheduledValue("x", 64, external=True)]
    steps, costs = [], []
    for index in range(length):
        values.append(ScheduledValue(f"v{index}", 64))
        steps.append(Step(f"f{index}", "F", (index,), (index + 1,)))
        costs.append(dear if index % 2 else cheap)
    before = length
    for index in range(length, 0, -1):
        values.append(ScheduledValue(f"g{index}", 64))
        over = (Alias(len(values) - 1, before, AliasKind.IN_PLACE),)
        steps.append(Step(f"b{index}", "B", (before, index), (len(values) - 1,), 0, over))
        costs.append(10)
        before = len(values) - 1
    return Schedule(tuple(values), tuple(steps), (before,)), costs
