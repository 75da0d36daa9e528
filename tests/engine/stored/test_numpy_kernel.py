"""NumPy kernels of prepared models: made again from operator, attributes and known inputs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import tightship
from tests.engine.stored.files import parts_of
from tests.engine.stored.test_fuzz import ends
from tests.small_models import dense, model
from tightship.engine.kernels.kernel_context import KernelContext
from tightship.engine.stored.numpy_kernel import UnstorableError, kernel_json
from tightship.errors import FormatError, InputError
from tightship.graph import DType, Inline, Node, Value

ALL_NUMPY = ["native", "onednn"]


def image_net() -> bytes:
    """Attributes of each kind: integers, numbers, texts, lists; known inputs; one left out."""
    node = helper.make_node
    nodes = [
        node("Pad", ["x", "pads", "", "axes"], ["padded"], mode="reflect"),
        node("Conv", ["padded", "w"], ["c"], strides=[2, 1], auto_pad="SAME_UPPER"),
        node("LeakyRelu", ["c"], ["r"], alpha=0.125),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], ceil_mode=1),
        node("Slice", ["p", "start", "stop", "last"], ["y"]),
    ]
    known = {
        "pads": [1, 2, 2, 1], "axes": [2, 3], "start": [1], "stop": [1 << 40], "last": [-1],
    }  # fmt: skip
    weights = {name: np.array(elements, np.int64) for name, elements in known.items()}
    weights["w"] = np.random.default_rng(0).standard_normal((4, 3, 3, 3), np.float32)
    ends_of = [("x", TensorProto.FLOAT, [1, 3, 8, 8]), ("y", TensorProto.FLOAT, None)]
    return model(nodes, ends_of[:1], ends_of[1:], weights)


def written(folder: Path, source: bytes) -> Path:
    path = folder / "numpy.tship"
    tightship.prepare(source, path, without=ALL_NUMPY)
    return path


@pytest.mark.parametrize("source", [image_net(), dense(4)[0]])
def test_it_gives_the_bits_that_the_onnx_file_gives(source: bytes, tmp_path: Path) -> None:
    path = written(tmp_path, source)
    with tightship.load(source, without=ALL_NUMPY) as plain, tightship.load(path) as prepared:
        assert {step.kernel for step in prepared.plan.steps} == {"numpy"}
        ((name, (_, shape)),) = plain.input_types.items()
        feeds = {name: np.random.default_rng(1).standard_normal(shape or (), np.float32)}
        wanted, found = plain.run(feeds), prepared.run(feeds)
    assert {n: a.tobytes() for n, a in wanted.items()} == {n: a.tobytes() for n, a in found.items()}


@pytest.mark.parametrize(
    ("operator", "place", "value"),
    [
        ("LeakyRelu", (1, 0), "Nonsense"),
        ("LeakyRelu", (1, 5, "alpha"), ["pickle", "much"]),
        ("LeakyRelu", (1, 3), ["c", "more"]),
        ("LeakyRelu", (2, 0), []),
        ("Conv", (1, 5, "strides"), ["list", [["integer", 2]]]),
        ("Pad", (1, 5, "mode"), ["integer", 3]),
        ("Slice", (1, 6, "start"), ["int64", [2], "00"]),
    ],
)
def test_what_is_no_kernel_is_refused(
    operator: str, place: tuple[int | str, ...], value: object, tmp_path: Path
) -> None:
    path = written(tmp_path, image_net())
    parts = parts_of(path.read_bytes())
    (step,) = (s for s in parts.text["programs"][0]["program"]["steps"] if s[1] == operator)
    holder: Any = step[6]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    path.write_bytes(parts.assembled())
    with pytest.raises(FormatError, match="is a damaged prepared model"):
        tightship.load(path)


def test_one_that_cannot_be_run_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, image_net())
    parts = parts_of(path.read_bytes())
    for step in parts.text["programs"][0]["program"]["steps"]:
        if step[1] == "Slice":
            step[6][1][6]["start"] = ["int64", [1], (3).to_bytes(8, "little").hex()]
    path.write_bytes(parts.assembled())
    with (
        tightship.load(path) as prepared,
        pytest.raises(FormatError, match="of a prepared model cannot be run"),
    ):
        prepared(np.zeros((1, 3, 8, 8), np.float32))


def test_wrong_values_are_refused_or_harmless(tmp_path: Path) -> None:
    assert ends(written(tmp_path, image_net()), 60, 0).keys() <= {"ran", "refused"}


def test_what_a_kernel_cannot_be_made_of_again_is_not_written() -> None:
    value = Value("x", DType.FLOAT32, (2,))
    texts = Inline(np.array(["a"], object))
    node = Node("n", "Anything", ("x",), ("y",), {"words": texts})
    with pytest.raises(UnstorableError, match="strings"):
        kernel_json(KernelContext(node, (value,), (value,), {}))


def test_what_only_the_reference_runs_is_refused(tmp_path: Path) -> None:
    ends_of = [("x", TensorProto.FLOAT, [4]), ("y", TensorProto.FLOAT, None)]
    source = model([helper.make_node("Unique", ["x"], ["y"])], ends_of[:1], ends_of[1:])
    with pytest.raises(InputError, match=r"\(Unique\) allocates its results when it runs"):
        written(tmp_path, source)
