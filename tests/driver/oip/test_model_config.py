"""A configuration against the model that it describes: every difference is named."""

import pytest

from tightship.driver.oip.config_text import read_text
from tightship.driver.oip.model_config import ConfigMismatchError, check_matches
from tightship.graph import DType

INPUTS = {"x": (DType.FLOAT32, ("n", 3, None)), "ids": (DType.INT64, ("n", 8))}
OUTPUTS = {"y": (DType.FLOAT32, (None, 10)), "z": (DType.FLOAT32, None)}

X = 'input {{ name: "x" data_type: TYPE_FP32 dims: [{}] }}'
IDS = 'input { name: "ids" data_type: TYPE_INT64 dims: 8 }'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_batch_size: 4",
        f"max_batch_size: 4 {X.format('3, 5')} {IDS}",
        f"max_batch_size: 4 {X.format('-1, -1')} {IDS}",
        X.format("2, 3, 5") + IDS.replace("dims: 8", "dims: [2, 8]"),
        'max_batch_size: 4 output { name: "y" dims: 10 }',
        'output { name: "z" dims: [1, 2, 3] }',
        'output { name: "y" data_type: TYPE_FP32 dims: [-1, 10] }',
    ],
)
def test_what_agrees_is_accepted(text):
    check_matches(read_text(text), INPUTS, OUTPUTS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{X.format('3, 5')} {IDS}", "input `x` has dims [3, 5], in the model the shape"),
        (
            f"max_batch_size: 4 {X.format('4, 5')} {IDS}",
            "input `x` has dims [4, 5] after the batch, in the model the shape [-1, 3, -1]",
        ),
        (
            X.replace("FP32", "FP16").format("-1, 3, 5") + IDS.replace("8", "[-1, 8]"),
            "input `x` has data_type TYPE_FP16, in the model TYPE_FP32",
        ),
        (X.format("-1, 3, 5"), "input `ids` of the model is missing"),
        ('input { name: "a" dims: 1 }', "input `a` is not in the model, which has `x`, `ids`"),
        ('output { name: "q" dims: 1 }', "output `q` is not in the model, which has `y`, `z`"),
        ('output { name: "y" dims: [-1, 11] }', "output `y` has dims [-1, 11], in the model"),
    ],
)
def test_a_difference_is_named(text, said):
    with pytest.raises(ConfigMismatchError) as caught:
        check_matches(read_text(text), INPUTS, OUTPUTS)
    assert said in str(caught.value)


def test_all_differences_are_named_at_once():
    text = 'input { name: "a" dims: 1 } output { name: "y" data_type: TYPE_INT8 dims: [1, 9] }'
    with pytest.raises(ConfigMismatchError) as caught:
        check_matches(read_text(text), INPUTS, OUTPUTS)
    assert str(caught.value).count(";") == 4


@pytest.mark.parametrize("shape", [(1, 3), ()])
def test_a_batch_needs_an_open_first_dimension(shape):
    fixed = {"x": (DType.FLOAT32, shape)}
    with pytest.raises(ConfigMismatchError, match="its first dimension must be open"):
        check_matches(read_text("max_batch_size: 2"), fixed, {})
    with pytest.raises(ConfigMismatchError, match="its first dimension must be open"):
        check_matches(read_text("max_batch_size: 2"), {}, fixed)
