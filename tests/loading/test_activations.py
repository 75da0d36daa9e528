"""Products by blocks of a GGUF file, with activations rounded to int8 or not."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import gguf_decoder
from benchmarks.llama_contender import SHAPES

import tightship
from tests import decoders
from tests.engine.graphs import run
from tests.engine.lower.native.test_block_product import rounded
from tests.frontend.gguf.decoders import IDS, decoder
from tests.frontend.onnx.contrib.test_quantized_weights import by_blocks
from tests.text.vocabularies import chat_model
from tightship.cli import main
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.repository import Repository
from tightship.engine.activations import EXACT
from tightship.engine.compile.compile_graph import Settings
from tightship.errors import FormatError, InputError
from tightship.frontend.onnx import read_bytes
from tightship.loading.session_plan import session_planner
from tightship.prepared_cache import identity

ROUNDED: Mapping[str, Any] = {"activations": "int8"}
SESSION = 32


@pytest.fixture(params=["Q4_0", "Q8_0"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    found = tmp_path / "decoder.gguf"
    found.write_bytes(decoder("llama", request.param, is_tied=False, layers=2).written())
    return found


@pytest.fixture
def one(tmp_path: Path) -> Path:
    found = tmp_path / "decoder.gguf"
    found.write_bytes(decoder("llama", "Q8_0").written())
    return found


def logits(path: Path, **options: Any) -> np.ndarray:
    with tightship.load(path, **options) as model:
        session = model.session(SESSION, rows="all", cache="float32")
        return np.concatenate([session.step(IDS[:6]), session.step(IDS[6:])], 1)[0]


@pytest.mark.parametrize("rows", [1, 17])
@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_rounds_each_block_of_its_activations(bits: int, rows: int) -> None:
    case = by_blocks(bits, 96, "none", block=32)
    case.inputs["x"] = np.random.default_rng(rows).standard_normal((1, rows, 96), np.float32)
    graph = read_bytes(case.model)
    w = case.inputs["w"]
    quants = np.stack([w & 15, w >> 4], -1) if bits == 4 else w
    integers = quants.reshape(len(w), 3, 32).astype(np.float64) - (1 << (bits - 1))
    weights = (integers * case.inputs["scales"].reshape(len(w), 3, 1)).reshape(len(w), -1)
    numbers, scales = rounded(case.inputs["x"][0], 32)
    near = (numbers * scales[..., None]).reshape(rows, -1)
    given = {"x": case.inputs["x"]}
    found = run(graph, (EXACT,), given)["y"][0]
    bound = 1e-5 * (np.abs(near) @ np.abs(weights).T)
    assert (np.abs(found - near @ weights.T) <= bound).all()
    assert (np.abs(run(graph, (), given)["y"][0] - near @ weights.T) > bound).any()


def test_logits_are_near_those_of_float32_and_those_of_the_same_decoder_in_onnx(
    path: Path,
) -> None:
    exact, found = logits(path), logits(path, **ROUNDED)
    assert np.array_equal(exact, logits(path, activations="float32"))
    largest = np.abs(exact).max()
    assert 1e-4 * largest < np.abs(found - exact).max() < 0.05 * largest
    exported = path.with_suffix(".onnx")
    gguf_decoder.write(gguf_decoder.read(path), exported, context=SESSION, level=4)
    np.testing.assert_allclose(found, logits(exported, shapes=SHAPES), rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("kind", ["Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"])
def test_encoded_rows_are_rounded_too(kind: str, tmp_path: Path) -> None:
    """Logits are near those of float32, also where a session has other types besides."""
    path = tmp_path / "decoder.gguf"
    path.write_bytes(decoder("llama", kind, width=256, layers=2).written())
    exact, found = logits(path), logits(path, **ROUNDED)
    largest = np.abs(exact).max()
    assert 1e-4 * largest < np.abs(found - exact).max() < 0.05 * largest
    plan = tightship.plan(path, **ROUNDED)
    assert "encoded_product_int8" in {step.implementation for step in plan.steps}
    assert plan.key["block_products"] == "int8"


def test_halves_stay_exact(tmp_path: Path) -> None:
    path = tmp_path / "decoder.gguf"
    for kind in ("F16", "BF16"):
        path.write_bytes(decoder("llama", kind, width=256).written())
        made = tightship.plan(path, **ROUNDED)
        assert "encoded_product" in {step.implementation for step in made.steps}


def test_a_plan_says_the_type_and_is_not_exceeded(one: Path) -> None:
    plan = tightship.plan(one, **ROUNDED)
    assert (plan.key["activations"], plan.key["block_products"]) == ("int8", "int8")
    assert "without" not in plan.key
    assert "activations" not in tightship.plan(one).key
    assert tightship.plan(one.read_bytes(), **ROUNDED).peak_bytes == plan.peak_bytes
    sessions = session_planner(one, {}, Settings(None, 1, (EXACT,))).plan(SESSION)
    with tightship.load(one, max_memory=sessions.peak_bytes(1), **ROUNDED) as model:
        assert model.plan.key == plan.key
        model.session(SESSION).step(IDS)
        held = model.memory_stats()
        bytes_held = held.weights_bytes + held.arena_bytes + held.program_bytes
        assert bytes_held <= sessions.peak_bytes(1)


@pytest.mark.parametrize("is_rounded_first", [False, True])
def test_shared_files_of_both_types_are_apart(
    one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_rounded_first: bool
) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))
    alone = {None: logits(one), "int8": logits(one, **ROUNDED)}
    for kind in ("int8", None, "int8") if is_rounded_first else (None, "int8", None):
        assert np.array_equal(logits(one, share=True, activations=kind), alone[kind]), kind


def test_a_prepared_file_keeps_the_type(one: Path, tmp_path: Path) -> None:
    wanted, ready = logits(one, **ROUNDED), tmp_path / "decoder.tship"
    tightship.prepare(one, ready, context=SESSION, cache="float32", **ROUNDED)
    for options in ({}, ROUNDED):
        with tightship.load(ready, **options) as model:
            found = model.session(SESSION, cache="float32").step(IDS)[0, -1]
        np.testing.assert_allclose(found, wanted[-1], rtol=0, atol=1e-5 * np.abs(wanted).max())
    for call in (tightship.load, tightship.plan):
        with pytest.raises(FormatError, match="prepared for activations of int8; here it is"):
            call(ready, activations="float32")
    tightship.prepare(one, ready, context=SESSION)
    with pytest.raises(FormatError, match=f"--activations int8 --context {SESSION}`"):
        tightship.load(ready, **ROUNDED)
    with pytest.raises(FormatError, match="passes left out: none; here it is"):
        tightship.load(ready, without=["in_place"])
    tightship.prepare(one, ready, without=["in_place"])
    with pytest.raises(FormatError, match="--without in_place --activations int8`"):
        tightship.load(ready, **ROUNDED)


def test_models_that_are_not_gguf_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "llama.onnx"
    path.write_bytes(decoders.llama())
    for call in (
        lambda **options: tightship.load(path, share=True, **options),
        lambda **options: tightship.plan(path, **options),
        lambda **options: tightship.plan(path.read_bytes(), **options),
        lambda **options: tightship.prepare(path, tmp_path / "out.tship", **options),
    ):
        with pytest.raises(InputError, match=r"is not a GGUF file; leave it out\. An ONNX file"):
            call(activations="int8")
        with pytest.raises(InputError, match="not a GGUF file"):
            call(without=[EXACT])
        with pytest.raises(InputError, match="is 'int4'; it must be `float32` or `int8`"):
            call(activations="int4")
    assert [each.name for each in tmp_path.iterdir()] == ["llama.onnx"]
    with pytest.raises(InputError, match="leave one of these away"):
        tightship.plan(path, activations="float32", without=[EXACT])


def test_a_served_model_rounds(one: Path) -> None:
    wanted = logits(one, **ROUNDED)
    repository = Repository(lambda: {"chat": ModelSource(one, activations="int8")})
    repository.load("chat")
    served = repository.served("chat").model
    assert served.plan.key["activations"] == "int8"
    session = served.session(SESSION, rows="all", cache="float32")
    found = np.concatenate([session.step(IDS[:6]), session.step(IDS[6:])], 1)[0]
    assert np.array_equal(found, wanted)
    repository.close()


def test_commands_take_the_type(
    one: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ready, rounds = str(tmp_path / "out.tship"), ("--activations", "int8")
    assert main(["plan", str(one), *rounds, "--json"]) == 0
    assert '"activations": "int8"' in capsys.readouterr().out
    assert main(["prepare", str(one), "-o", ready, *rounds, "--context", "32"]) == 0
    assert main(["plan", ready, *rounds, "--context", "32"]) == 0
    assert main(["plan", ready, "--activations", "float32", "--context", "32"]) == 2
    assert "prepared for activations of int8" in capsys.readouterr().err
    chat, onnx = tmp_path / "chat.gguf", tmp_path / "llama.onnx"
    chat.write_bytes(chat_model())
    onnx.write_bytes(decoders.llama())
    for command in (["generate", "-p", "Hi", "--max-tokens", "2"],):
        assert main([*command, str(chat), *rounds]) == 0
        capsys.readouterr()
        assert main([*command, str(onnx), *rounds]) == 2
        assert "`llama.onnx` is not a GGUF file" in capsys.readouterr().err
    for command in (["plan"], ["plan", "--context", "32"], ["prepare", "-o", ready]):
        assert main([*command, str(onnx), *rounds]) == 2
        assert "`llama.onnx` is not a GGUF file" in capsys.readouterr().err
    assert main(["serve", str(onnx), *rounds]) == 2
    assert "`--activations` is for GGUF files" in capsys.readouterr().err
