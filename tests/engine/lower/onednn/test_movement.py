"""Concatenations of short runs: by which kernel."""

import pytest

from tests.engine.graphs import assert_close, expected, graph_of, implementations, run

CASES = [
    ((40, 2), (40, 2), 1, "native"),
    ((4, 10, 16), (4, 10, 3), -1, "native"),
    ((40, 2), (40, 17), 1, "onednn"),
    ((40, 2), (3, 2), 0, "onednn"),
    ((1, 4, 2), (1, 3, 2), 1, "onednn"),
]


@pytest.mark.parametrize(("first", "second", "axis", "kernel"), CASES)
def test_short_runs_are_copied_by_the_core(first, second, axis, kernel):
    joined = list(first)
    joined[axis] += second[axis]
    x, z, y = (", ".join(map(str, shape)) for shape in (first, second, joined))
    made = graph_of(
        f"g (float[{x}] x, float[{z}] z) => (float[{y}] y) {{ y = Concat <axis = {axis}> (x, z) }}"
    )
    assert [found for _, found, _ in implementations(made)] == [kernel]
    assert_close(run(made), expected(made))
