"""Types of caches that sessions have by default: float16 where products round activations."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, Model, decoder
from tests.frontend.gguf.written import Tensor
from tests.text.vocabularies import chat_model
from tightship.cli import main
from tightship.driver.texts.session_slots import SessionSlots
from tightship.driver.texts.text_limits import TextLimits
from tightship.errors import InputError

CONTEXT = 32
TEXT = [*IDS, 11, 23, 6, 60, 8, 33, 2]


def written(folder: Path, model: Model) -> Path:
    path = folder / "decoder.gguf"
    path.write_bytes(model.written())
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, decoder("llama", "Q8_0", is_tied=False, layers=2))


def logits(model: tightship.Model, cache: Any = None) -> Any:
    return model.session(CONTEXT, rows="all", cache=cache).step(TEXT)[0]


@pytest.mark.parametrize("name", ["fuse_attention", "native", "read_stored_rows"])
def test_without_a_pass_that_they_need_caches_are_the_models(name: str, path: Path) -> None:
    with tightship.load(path, activations="int8", without=[name]) as model:
        np.testing.assert_array_equal(logits(model), logits(model, "float32"))


def test_rounded_activations_go_with_float16_and_others_with_float32(path: Path) -> None:
    with tightship.load(path, activations="int8") as model:
        kinds: Any = (None, "float16", "float32")
        session, half, full = (model.session(CONTEXT, cache=each) for each in kinds)
        assert session._programs is half._programs
        assert session.state_bytes == full.state_bytes / 2
        assert not np.array_equal(session.step(TEXT), full.step(TEXT))
    with tightship.load(path) as model:
        plain, named = (model.session(CONTEXT, cache=c) for c in (None, "float32"))
        assert plain._programs is named._programs
        assert plain.state_bytes == full.state_bytes


@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "Q4_1"])
def test_logits_are_as_near_to_float32_as_with_its_caches(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, decoder("llama", kind, layers=4))
    with tightship.load(path) as model:
        exact = logits(model)
    with tightship.load(path, activations="int8") as model:
        off = {each: logits(model, each) - exact for each in ("float16", "float32")}
    half, full = (float(np.sqrt(np.mean(each**2))) for each in off.values())
    assert half < 1.1 * full


def test_plans_have_the_smaller_caches(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for options in ([], ["--cache", "float32"]):
        command = ["plan", str(path), "--context", "32", "--activations", "int8", "--json"]
        assert main([*command, *options]) == 0
        found[len(options)] = json.loads(capsys.readouterr().out)
    half, full = (found[count]["contexts"][0] for count in (0, 2))
    assert (found[0]["cache"], found[2]["cache"]) == ("float16", "float32")
    assert half["state_bytes"] == full["state_bytes"] / 2
    with tightship.load(path, activations="int8") as model:
        for plan, cache in ((half, None), (full, "float32")):
            session = model.session(CONTEXT, cache=cache)
            own = model.plan.peak_bytes + session._programs.planned_bytes() + session.state_bytes
            assert plan["peaks"][0]["peak_bytes"] == own


def test_a_prepared_file_has_the_type_that_it_was_made_for(path: Path, tmp_path: Path) -> None:
    ready = tmp_path / "decoder.tship"
    for made, others in ((None, "float32"), ("float32", None)):
        tightship.prepare(path, ready, context=CONTEXT, cache=made, activations="int8")
        with tightship.load(path, activations="int8") as model:
            wanted = model.session(CONTEXT, cache=made)
            with tightship.load(ready) as stored:
                session = stored.session(CONTEXT, cache=made)
                assert session.state_bytes == wanted.state_bytes
                assert np.array_equal(session.step(TEXT), wanted.step(TEXT))
                option = " --cache float32" if others else ""
                with pytest.raises(InputError, match=f"--activations int8 --context 32{option}`"):
                    stored.session(CONTEXT, cache=others)
        plan = ["plan", str(ready), "--context", "32"]
        assert main([*plan, *(["--cache", made] if made else [])]) == 0
        assert main([*plan, "--cache", others or "float16"]) == 2


def test_kept_programs_and_rows_of_both_types_are_apart(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr("tightship.prepared_cache.identity.SETTLED_NS", -(10**18))
    saved, wanted = tmp_path / "session", {}
    for _ in range(2):
        with tightship.load(path, activations="int8") as model:
            for cache in (None, "float32"):
                session = model.session(CONTEXT, cache=cache)
                found = session.step(TEXT)
                assert np.array_equal(found, wanted.setdefault(cache, found)), cache
                session.save(saved)
            with pytest.raises(InputError, match=r"in float32, and this one in float16.*t32\"`"):
                model.session(CONTEXT).restore(saved)
            other = model.session(CONTEXT, cache="float32")
            other.restore(saved)
            assert np.array_equal(other.step([4]), session.step([4]))


def test_a_server_has_it_too(tmp_path: Path) -> None:
    path = tmp_path / "chat.gguf"
    path.write_bytes(chat_model())
    with tightship.load(path, activations="int8") as model:
        for cache, kind in ((None, "float16"), ("float32", "float32")):
            slots = SessionSlots.of(model, TextLimits(context=CONTEXT, sessions=2, cache=cache))
            slot = slots.take([1], 8)
            assert slot is not None
            assert {c.dtype.value for c in slot.session._programs.decoder.caches} == {kind}
            slots.close()


def test_elements_beyond_65504_become_infinite(tmp_path: Path) -> None:
    """llama.cpp has infinities there too; caches of float32 hold such elements."""
    model = decoder("llama", "Q8_0")
    width = len(model.floats("blk.0.attn_norm.weight"))
    model.tensors["blk.0.attn_norm.weight"] = Tensor.floats(np.full(width, 1e7))
    with tightship.load(written(tmp_path, model), activations="int8") as loaded:
        with np.errstate(all="ignore"):
            assert not np.isfinite(logits(loaded)).all()
        assert np.isfinite(logits(loaded, "float32")).all()
