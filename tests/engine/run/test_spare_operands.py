"""Values whose bytes the step that reads them last writes its result to."""

import numpy as np
import pytest

from tests.engine.run.programs import loaded
from tightship.engine.arenas.model_pools import ModelPools
from tightship.errors import OutOfMemoryError

ROW = 512
VALUE_BYTES = 40 * ROW * 4
"""Bytes of all rows, the largest value; the indices that choose them have 640."""

PICKED = """g (float[40] c, float[40, 512] x, float[3, 512] u, int64[3, 1] i) => (%s) {
    b = NonZero (c)
    t = Transpose <perm = [1, 0]> (b)
    v = GatherND (x, t)
    %s
}"""
RANDOM = np.random.default_rng(5)
FEEDS = {
    "c": np.ones(40, np.float32),
    "x": RANDOM.standard_normal((40, ROW)).astype(np.float32),
    "u": RANDOM.standard_normal((3, ROW)).astype(np.float32),
    "i": np.array([[3], [0], [3]]),
}


def scattered(rows):
    changed = rows.copy()
    for (place,), update in zip(FEEDS["i"], FEEDS["u"], strict=True):
        changed[place] = update
    return changed


IN_PLACE = {
    "functions": ("y = Neg (v)", lambda v: -v),
    "the second of two operands": ("y = Sub (one, v)", lambda v: 1 - v),
    "limits": ("y = Clip (v, one)", lambda v: np.maximum(v, 1)),
    "rows that replace others": ("y = ScatterND (v, i, u)", scattered),
    "one after another": (
        "w = Neg (v)  q = ScatterND (w, i, u)  y = Relu (q)",
        lambda v: np.maximum(scattered(-v), 0),
    ),
}


@pytest.mark.parametrize("what", sorted(IN_PLACE))
def test_a_result_takes_the_bytes_of_the_operand_that_dies(what):
    body, wanted = IN_PLACE[what]
    run, _ = loaded(PICKED % ("float[m, 512] y", body), one=np.float32(1))
    for _ in range(2):
        results = run(FEEDS, dynamic=ModelPools(0, VALUE_BYTES * 3 // 2))
        np.testing.assert_array_equal(results["y"], wanted(FEEDS["x"]))
    with pytest.raises(OutOfMemoryError):
        run(FEEDS, dynamic=ModelPools(0, VALUE_BYTES // 2))


KEPT = {
    "a later step reads it": ("w = Neg (v)  y = Mul (w, v)", lambda v: -v * v),
    "it is read twice": ("w = Neg (v)  q = Mul (w, w)  y = Sub (v, q)", lambda v: v - v * v),
    "another value has its bytes": (
        "s = Shape (v)  r = Reshape (v, s)  w = Neg (v)  y = Sub (w, r)",
        lambda v: -v - v,
    ),
    "rows are replaced meanwhile": (
        "w = ScatterND (v, i, u)  y = Sub (w, v)",
        lambda v: scattered(v) - v,
    ),
}


@pytest.mark.parametrize("what", sorted(KEPT))
def test_an_operand_that_is_needed_stays(what):
    body, wanted = KEPT[what]
    run, _ = loaded(PICKED % ("float[m, 512] y, float[m, 512] v", body))
    results = run(FEEDS)
    np.testing.assert_array_equal(results["y"], wanted(FEEDS["x"]))
    np.testing.assert_array_equal(results["v"], FEEDS["x"])
    run, _ = loaded(PICKED % ("float[m, 512] y", body))
    np.testing.assert_array_equal(run(FEEDS)["y"], wanted(FEEDS["x"]))


def test_results_of_one_run_stay_in_the_next():
    run, _ = loaded(PICKED % ("float[m, 512] y", "y = Neg (v)"))
    first = run(FEEDS)["y"]
    run({**FEEDS, "x": np.zeros((40, ROW), np.float32)})
    np.testing.assert_array_equal(first, -FEEDS["x"])
