import argparse

import pytest

from tightship.budget.isa import MASKS
from tightship.cli.budget_options import ISAS, add_budget


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_budget(parser)
    return parser.parse_args(arguments)


def test_instruction_sets_are_those_that_plans_are_made_for():
    assert tuple(MASKS) == ISAS
    assert parsed("check", "--isa", "avx512_core").isa == "avx512_core"


def test_a_command_must_be_named():
    assert (parsed("lock").action, parsed("lock").budgets) == ("lock", None)
    with pytest.raises(SystemExit):
        parsed()
