"""The light models of the onnx package: as they are, and with weights from a seed."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.zoo.arena import poison
from tests.zoo.light import NAMES, SHAPE, randomised, stored_case
from tests.zoo.oracle import assert_near, assert_same_bits, expected
from tightship.engine.lower.pipeline import pass_names

QUICK = ("shufflenet", "squeezenet")
EACH = [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in NAMES]


def image() -> np.ndarray:
    return np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)


@pytest.mark.parametrize("name", EACH)
def test_a_light_model_gives_its_stored_output(name: str) -> None:
    case, stored = stored_case(name)
    with tightship.load(case.model) as model:
        assert_near(model.run(case.feeds), {model.output_names[0]: stored})


@pytest.mark.parametrize("name", EACH)
def test_a_light_model_of_random_weights_gives_what_onnxruntime_gives(
    name: str, tmp_path: Path
) -> None:
    path = randomised(name, 1, tmp_path)
    feeds = dict.fromkeys(stored_case(name)[0].feeds, image())
    wanted = expected(str(path), feeds)
    for threads in (1, 2):
        with tightship.load(path, threads=threads) as model:
            assert model.plan.is_exact
            assert model.plan.arena_bytes <= 1.02 * model.plan.lower_bound_bytes
            results = model.run(feeds)
            assert_near(results, wanted)
            poison(model)
            assert_same_bits(model.run(feeds), results)


def test_weights_in_a_file_of_their_own_give_the_same_bits(tmp_path: Path) -> None:
    inline = randomised("squeezenet", 2, tmp_path)
    (tmp_path / "apart").mkdir()
    external = randomised("squeezenet", 2, tmp_path / "apart", external=True)
    assert external.stat().st_size < 100_000 < inline.stat().st_size
    with tightship.load(inline) as one, tightship.load(external) as other:
        assert_same_bits(other.run({"data_0": image()}), one.run({"data_0": image()}))
        assert other.plan.arena_bytes == one.plan.arena_bytes


@pytest.mark.parametrize("left_out", [name for name in pass_names() if name != "onednn"])
@pytest.mark.slow
def test_a_light_model_gives_the_same_without_any_one_pass(left_out: str, tmp_path: Path) -> None:
    for name in ("densenet121", "resnet50", "shufflenet"):
        path = randomised(name, 3, tmp_path)
        feeds = dict.fromkeys(stored_case(name)[0].feeds, image())
        with tightship.load(path, without=(left_out,)) as model:
            assert_near(model.run(feeds), expected(str(path), feeds))
