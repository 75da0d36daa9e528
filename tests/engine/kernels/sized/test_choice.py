"""An If whose branches the core runs."""

import numpy as np
import pytest

from tests.engine.kernels.node_suite import Case
from tests.engine.kernels.sized.test_native import alone
from tests.engine.run.programs import loaded
from tests.engine.run.test_sized_run import steps_in_python
from tightship.graph import Node

TEXT = """g (float[4] x) => (float[p] y) {{
    z = NonZero (x)
    s = Size (z)
    c = Equal (s, none)
    y = If (c) <
        then_branch = empty () => (float[q] a) {{ a = Constant <value = float[2] {{7, 8}}> () }},
        else_branch = some () => (float[r] b) {{
            t = Transpose <perm = [1, 0]> (z)
            v = GatherND (x, t)
            b = {operator} (v{more}) }}
    >
}}"""


def run_of(operator="Neg", more=""):
    return loaded(TEXT.format(operator=operator, more=more), none=np.array(0))[0]


def test_the_core_runs_the_branch_of_the_condition(monkeypatch):
    run = run_of()
    seen = steps_in_python(monkeypatch)
    assert run({"x": np.array([0, 2, 0, 3], np.float32)})["y"].tolist() == [-2, -3]
    assert run({"x": np.zeros(4, np.float32)})["y"].tolist() == [7, 8]
    assert seen == []


def test_a_branch_with_another_operator_runs_in_python(monkeypatch):
    run = run_of("CumSum", ", none")
    seen = steps_in_python(monkeypatch)
    run({"x": np.array([0, 2, 0, 3], np.float32)})
    assert "If" in seen


def test_a_condition_of_several_elements_is_left():
    node = Node("n", "If", ("c",), ("y",), {}, version=18)
    assert alone(Case("", node, (np.array([True, False]),), ())) is None


def test_a_branch_reads_constants_around_it(monkeypatch):
    run = loaded(TEXT.format(operator="Add", more=", one"), none=np.array(0),
                 one=np.ones(1, np.float32))[0]  # fmt: skip
    seen = steps_in_python(monkeypatch)
    assert run({"x": np.array([0, 2, 0, 3], np.float32)})["y"].tolist() == [3, 4]
    assert seen == []


@pytest.mark.parametrize("names", [("then_branch", "else_branch"), ("else_branch", "then_branch")])
def test_captures_are_found_in_whichever_order_a_file_has_the_branches(names, monkeypatch):
    branches = {
        "then_branch": "then_branch = one () => (float[q] f) { f = Sub (v, p) }",
        "else_branch": "else_branch = two () => (float[r] h) { h = Div (p, w) }",
    }
    text = f"""g (float[4] x) => (float[k] y) {{
        z = NonZero (x)
        s = Size (z)
        c = Equal (s, none)
        v = Neg (x)
        w = Add (x, x)
        p = Abs (x)
        y = If (c) < {branches[names[0]]}, {branches[names[1]]} >
    }}"""
    run = loaded(text, none=np.array(0))[0]
    seen = steps_in_python(monkeypatch)
    assert run({"x": np.array([1, -2, 4, -8], np.float32)})["y"].tolist() == [0.5, -0.5, 0.5, -0.5]
    assert run({"x": np.zeros(4, np.float32)})["y"].tolist() == [0, 0, 0, 0]
    assert "If" not in seen
