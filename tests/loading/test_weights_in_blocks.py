"""A decoder with weights in blocks: held once, as the file has them, at every length."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import tightship
from tests.zoo.decoder import Quantized, Size, decoder
from tests.zoo.net import Case
from tightship.engine.lower.native import block_weights
from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Node

SIZE = Size(layers=5, width=256, heads=4, groups=2, inside=512, vocabulary=2048)
HELD_RATIO_MAX = 1.05
"""Bytes held of weights, over those of the file."""
PRIVATE_BYTES_MAX = 64 << 10
"""Tables and numbers that depend on lengths."""
FORMS = {
    "4": Quantized(4), "4, zeros": Quantized(4, 128, has_zeros=True), "8": Quantized(8),
    "2": Quantized(2), "4, int8": Quantized(4, level=4), "8, int8": Quantized(8, level=4),
}  # fmt: skip
TIED = (False, pytest.param(True, marks=pytest.mark.slow))
LENGTHS = ((1, 8), (1, 9), (1, 12), (7, 0), (40, 3), (1, 8))
"""Rows, and tokens before them."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models."""
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    return tmp_path / "prepared"


def written(tmp_path: Path, case: Case) -> Path:
    path = tmp_path / "decoder.onnx"
    path.write_bytes(case.model)
    return path


def shapes(case: Case) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in case.feeds.items()}


def feeds(stored: Quantized, *, is_tied: bool = False) -> Iterator[dict[str, np.ndarray]]:
    for rows, past in LENGTHS:
        yield decoder(SIZE, stored, rows=rows, past=past, is_tied=is_tied).feeds


@pytest.mark.parametrize("is_tied", TIED)
@pytest.mark.parametrize("form", FORMS)
def test_weights_are_held_once_at_every_length(form: str, is_tied: bool, tmp_path: Path) -> None:
    stored = FORMS[form]
    case = decoder(SIZE, stored, is_tied=is_tied)
    path = written(tmp_path, case)
    session = onnxruntime.InferenceSession(path)
    within = 3e-2 if stored.level else 1e-4
    with tightship.load(path, shapes=shapes(case)) as model:
        assert model.plan.weights_bytes <= HELD_RATIO_MAX * len(case.model)
        assert model.plan.key["block_products"] == ("int8" if stored.level else "exact")
        for each in feeds(stored, is_tied=is_tied):
            (wanted,) = session.run(["logits"], each)
            error = np.abs(model.run(each)["logits"] - wanted).max() / np.abs(wanted).max()
            assert error < within
        assert model.memory_stats().weights_bytes <= model.plan.weights_bytes + PRIVATE_BYTES_MAX


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("is_tied", TIED)
def test_weights_are_shared_at_every_length(is_tied: bool, tmp_path: Path) -> None:
    stored = Quantized(4)
    case = decoder(SIZE, stored, is_tied=is_tied)
    path = written(tmp_path, case)
    with (
        tightship.load(path, shapes=shapes(case)) as alone,
        tightship.load(path, shapes=shapes(case), share=True) as shared,
    ):
        for each in feeds(stored, is_tied=is_tied):
            wanted, found = (model.run(each)["logits"] for model in (alone, shared))
            assert wanted.tobytes() == found.tobytes()
            assert shared.memory_stats().weights_bytes <= PRIVATE_BYTES_MAX


SHARING = """
import sys
import numpy as np
import tightship
path, *shapes = sys.argv[1:]
given = {}
for each in shapes:
    name, _, lengths = each.partition("=")
    given[name] = tuple(map(int, lengths.split("x")))
with tightship.load(path, shapes=given, share=True) as model:
    types = model.input_types.items()
    model.run({name: np.ones(shape, dtype.numpy) for name, (dtype, shape) in types})
    print(model.plan.weights_bytes, flush=True)
    sys.stdin.read()
    own = 0
    for line in open("/proc/self/smaps"):
        if "-" in line.split(" ")[0]:
            name = line.split()[-1]
        if line.startswith("Private_") and name.endswith("model.tship"):
            own += int(line.split()[1]) * 1024
    print(own, flush=True)
"""


@pytest.mark.usefixtures("folder")
def test_two_processes_map_one_copy(tmp_path: Path) -> None:
    case = decoder(SIZE)
    path = written(tmp_path, case)
    given = [f"{name}={'x'.join(map(str, shape))}" for name, shape in shapes(case).items()]
    command, pipe = [sys.executable, "-c", SHARING, path, *given], subprocess.PIPE
    group = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    weights = [int(process.stdout.readline()) for process in group]
    assert weights[0] == weights[1] > len(case.model) // 2
    (own, _), (alone, _) = (process.communicate("\n") for process in group)
    assert int(own) < weights[0] // 10
    assert int(alone) > weights[0] // 2  # what one process maps alone counts as its own


@pytest.mark.parametrize("form", FORMS)
def test_a_prepared_decoder_gives_the_same_bits(form: str, tmp_path: Path) -> None:
    case = decoder(SIZE, FORMS[form], is_tied=form == "4")
    path, prepared = written(tmp_path, case), tmp_path / "decoder.tship"
    with tightship.load(path, shapes=shapes(case)) as model:
        wanted = model.run(case.feeds)["logits"]
    tightship.prepare(path, prepared, shapes=shapes(case))
    assert prepared.stat().st_size <= HELD_RATIO_MAX * len(case.model) + (128 << 10)
    with tightship.load(prepared) as model:
        assert model.plan.key["block_products"] == ("int8" if FORMS[form].level else "exact")
        assert model.run(case.feeds)["logits"].tobytes() == wanted.tobytes()


def layers(count: int) -> bytes:
    """A product by weights in blocks, an activation and a residual, again and again."""
    random, width = np.random.default_rng(3), 128
    nodes, tensors, x = [], [], "x"
    for layer in range(count):
        raw = random.integers(0, 256, (width, width // 32, 16), np.uint8)
        scales = random.standard_normal((width, width // 32), np.float32) * np.float32(0.01)
        names = [f"{layer}.{part}" for part in ("weight", "scales")]
        tensors += map(numpy_helper.from_array, (raw, scales), names)
        nodes += [
            helper.make_node("MatMulNBits", [x, *names], [f"{layer}.p"], domain="com.microsoft",
                             K=width, N=width, bits=4, block_size=32),
            helper.make_node("Sigmoid", [f"{layer}.p"], [f"{layer}.s"]),
            helper.make_node("Add", [x, f"{layer}.s"], [f"{layer}.y"]),
        ]  # fmt: skip
        x = f"{layer}.y"
    sides = [helper.make_tensor_value_info(name, 1, ["rows", width]) for name in ("x", x)]
    graph = helper.make_graph(nodes, "layers", sides[:1], sides[1:], tensors)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def test_equal_layers_are_lowered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers whose weights differ in their elements alone are lowered together."""
    lowered, block_product = [], block_weights.block_product

    def counted(builder: Builder, node: Node) -> object:
        found = block_product(builder, node)
        lowered.extend([] if found is None else [node.name])
        return found

    monkeypatch.setattr(block_weights, "block_product", counted)
    path = tmp_path / "layers.onnx"
    path.write_bytes(layers(8))
    session = onnxruntime.InferenceSession(path)
    with tightship.load(path, shapes={"x": (2, 128)}) as model:
        steps = [step for step in model.plan.steps if step.implementation == "block_product"]
        assert len(steps) == 8
        assert len(lowered) <= 4
        held = model.memory_stats().weights_bytes
        for rows in (2, 1, 33):
            x = np.random.default_rng(rows).standard_normal((rows, 128), np.float32)
            np.testing.assert_allclose(model(x), session.run(None, {"x": x})[0], 1e-4, 1e-4)
        assert len(lowered) <= 12
        assert model.memory_stats().weights_bytes == held
