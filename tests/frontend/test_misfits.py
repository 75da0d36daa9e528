"""Operands of every operator that do not fit each other end in errors that name the node."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import defs

from tightship.graph.operators import named

PARTS = 6
"""Number of parts of the operators in the whole list."""
UNTRIED = frozenset({"GatherND", "LpNormalization", "MaxRoiPool", "Transpose"})
"""Refused where a rank is lower, or of no case in ONNX's suite; tried in `test_operands`."""
WITHOUT_RULE = {
    "onnx's inference holds them: they spread over each other": (
        "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less "
        "LessOrEqual Max Mean Min Mod Mul Or Pow StringConcat Sub Sum SwiGLU Where Xor Expand"
    ),
    "onnx's inference holds them to each other": "Concat LinearAttention MatMul",
    "one operand's elements say what the other must be, which the run checks": "Reshape",
    "all shapes fit": "CastLike Gather",
    "control flow and sequences, whose elements the run checks": (
        "Loop Scan SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceMap "
        "SplitToSequence"
    ),
}
"""Operators of several operands that need no rule, by reason."""


def tried(how: str, part: int, parts: int) -> tuple[int, dict[str, int], list[str]]:
    """Return the number of trials, how often operators were refused, and what went wrong."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.frontend.misfits", how, str(part), str(parts)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    count, refused, wrong = json.loads(done.stdout)
    return count, refused, wrong


def test_every_operator_of_several_operands_has_a_rule_or_a_reason() -> None:
    free = {operator for text in WITHOUT_RULE.values() for operator in text.split()}
    several = {
        schema.name
        for schema in defs.get_all_schemas()
        if not schema.domain and not schema.deprecated and schema.max_input > 1
    }
    assert several - named("operands") == free
    assert all(defs.has(operator) for operator in named("operands"))


def test_an_operand_that_does_not_fit_is_refused_with_the_nodes_name() -> None:
    count, refused, wrong = tried("quick", 0, 1)
    assert not wrong
    assert count > 900
    assert named("operands") - UNTRIED <= set(refused)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_operands_of_other_lengths_ranks_and_ways_are_refused_or_run(part: int) -> None:
    count, _, wrong = tried("whole", part, PARTS)
    assert not wrong
    assert count > 500
