"""Python steps of a run, and where their objects are."""

import numpy as np

from tests.engine.run.programs import loaded
from tightship.engine.run.limits import Limits
from tightship.engine.run.python_run import PythonRun, dense


def run_of(objects):
    made, _ = loaded("g (float[3] x) => (float[3] y) { y = Exp (x) }")
    return PythonRun(made.arena, {}, objects, Limits(), 1)


def test_an_object_is_kept_until_it_is_dropped():
    objects = {}
    run = run_of(objects)
    run.store("a", [1, 2])
    assert run.found("a") == [1, 2]
    run.drop("a")
    assert objects == {}


def test_what_leaves_a_run_is_dense():
    view = np.broadcast_to(np.float32(3), (2, 2))
    lists = dense([view, "text"])
    assert lists[0].flags.carray
    assert lists[1] == "text"
    whole = np.ones(3)
    assert dense(whole) is whole
