import argparse

import pytest

from tightship.cli.plan_options import add_plan_options


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    add_plan_options(parser)
    return parser.parse_args(arguments)


def test_two_plans_are_named():
    assert parsed("--diff", "a.onnx", "b.json").diff == ["a.onnx", "b.json"]
    with pytest.raises(SystemExit):
        parsed("--diff", "a.onnx")


def test_shapes_of_the_old_plan_may_be_several():
    assert parsed("--old-shape", "x=1x2", "--old-shape", "n=3").old_shape == [
        ("x", (1, 2)),
        ("n", (3,)),
    ]
