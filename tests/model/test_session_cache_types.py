"""Sessions whose caches have another type than the model's: rows, errors, files and sharing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import tightship
from tests import decoders
from tests.engine.stored_rows import TYPES, stored
from tightship.errors import GraphError, InputError

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
SIZE = decoders.Size(layers=1, length=64, positions=256)
LENGTHS = {"context": 256, "chunk": 8}
RANDOM = np.random.default_rng(4)
TEXT = [[int(token) for token in RANDOM.integers(0, 50, count)] for count in (40, 1, 1, 8, 16)]
ERRORS = {"float16": 2e-3, "bfloat16": 2e-2, "int8": 4e-2}
"""Largest difference of logits up to 4 in size from those of float32 caches."""
EXPORTS = {"llama": decoders.llama, "gpt2": decoders.gpt2, "genai": decoders.genai,
           "attention23": decoders.attention23}  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Iterator[tightship.Model]:
    with tightship.load(decoders.llama(SIZE), shapes=SIZES, threads=1) as loaded:
        yield loaded


def stepped(session: tightship.Session) -> Any:
    return np.concatenate([session.step(ids) for ids in TEXT])


def rows_of(session: tightship.Session) -> dict[str, Any]:
    return {name: session._rows.part(name, 0, session.length) for name in session._rows.arrays}


def same(session: tightship.Session, other: tightship.Session) -> None:
    """Compare all rows and a further step, bit for bit."""
    np.testing.assert_array_equal(session.step([3]), other.step([3]))
    for name, array in rows_of(session).items():
        assert array.tobytes() == rows_of(other)[name].tobytes()


@pytest.mark.parametrize("make", EXPORTS)
def test_logits_are_near_those_of_the_models_own_type(make: str) -> None:
    sizes = SIZES | ({"total_sequence_length": 2} if make == "genai" else {})
    size = decoders.Size(length=64, shared=4 if make == "gpt2" else 2, positions=256)
    kinds = TYPES if make == "llama" else TYPES[2:]
    with tightship.load(EXPORTS[make](size), shapes=sizes, threads=1) as loaded:
        plain = loaded.session(**LENGTHS)
        wanted = stepped(plain)
        assert np.abs(wanted).max() > 1
        for kind in kinds:
            session = loaded.session(**LENGTHS, cache=kind)
            error = np.abs(stepped(session) - wanted).max()
            assert 0 < error < ERRORS[kind], kind
            part = 68 / 256 if kind == "int8" else 0.5
            assert session.state_bytes == part * plain.state_bytes
            assert session._programs.appends


@pytest.mark.parametrize("kind", TYPES)
def test_rows_of_the_first_layer_are_those_of_float32_rounded(model, kind) -> None:
    plain, session = model.session(**LENGTHS), model.session(**LENGTHS, cache=kind)
    for each in (plain, session):
        stepped(each)
    for part in ("key", "value"):
        name = f"past_key_values.0.{part}"
        wanted = stored(np.ascontiguousarray(rows_of(plain)[name]), kind)
        assert rows_of(session)[name].tobytes() == wanted.tobytes()


def test_a_type_that_is_not_one_of_caches_is_refused(model) -> None:
    with pytest.raises(InputError, match=r"`cache` is 'int4'; it must be 'float32', 'float16', "):
        model.session(64, cache="int4")


def test_float32_is_the_models_own_type(model) -> None:
    plain, named = model.session(64), model.session(64, cache="float32")
    assert plain._programs is named._programs


def test_attention_that_no_kernel_fuses_is_refused_by_name() -> None:
    without = ["fuse_attention"]
    with tightship.load(decoders.llama(), shapes=SIZES, threads=1, without=without) as loaded:
        with pytest.raises(GraphError, match=r"past_key_values.0.key` .* int8: node .* \(MatMul\)"):
            loaded.session(**LENGTHS, cache="int8")
        loaded.session(**LENGTHS).step([1])


def test_types_do_not_mix(model, tmp_path: Path) -> None:
    path = tmp_path / "session"
    for kind in TYPES:
        session, other = (model.session(**LENGTHS, cache=kind) for _ in range(2))
        stepped(session)
        session.save(path)
        other.restore(path)
        same(session, other)
    assert path.stat().st_size < session.length * session.state_bytes // 256 + 4096
    plain = model.session(**LENGTHS)
    plain.step(TEXT[0])
    with pytest.raises(InputError, match=r'caches in int8, and this one in float32.*cache="int8"'):
        plain.restore(path)
    assert plain.length == len(TEXT[0])
    plain.save(path)
    with pytest.raises(InputError, match="caches in float32, and this one in int8"):
        other.restore(path)
    stepped(other)


@pytest.mark.parametrize("kind", TYPES)
def test_forks_and_truncated_sessions_have_the_bits_of_others(model, kind: str) -> None:
    first = model.session(**LENGTHS, cache=kind)
    ids = [int(token) for token in RANDOM.integers(0, 50, 160)]
    first.step(ids)
    fork, other = first.fork(), model.session(**LENGTHS, cache=kind)
    other.step(ids)
    assert fork._rows.shared_bytes > 0.5 * 160 * first.state_bytes / 256
    same(fork, other)
    fork.truncate(40)
    other.reset()
    other.step(ids[:40])
    same(fork, other)
    same(first, first.fork())


def test_a_pool_counts_the_pages_of_each_type(model) -> None:
    used = {}
    for kind in (None, *TYPES):
        pool = tightship.SessionPool("64MiB")
        session = model.session(**LENGTHS, pool=pool, cache=kind)
        session.step([7] * 256)
        used[kind] = pool.used_bytes
        assert session.state_bytes <= pool.used_bytes < session.state_bytes + 4096
    assert used["float16"] == used["bfloat16"] == used[None] / 2
    assert used["int8"] < 0.27 * used[None]
    both = tightship.SessionPool("64MiB")
    for kind in (None, "int8"):
        model.session(**LENGTHS, pool=both, cache=kind).step(TEXT[0])
    with pytest.raises((InputError, TypeError)):
        model.session(64, pool="int8")


def test_prefixes_of_different_types_are_not_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of 64 bytes as int8, so that few fill a page."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    size = decoders.Size(layers=1, length=60, positions=512)
    ids, shared = [int(token) for token in RANDOM.integers(0, 50, 264)], []
    with tightship.load(decoders.llama(size), shapes=SIZES, threads=1) as loaded:
        for kind in (None, "int8"):
            session, other = (
                loaded.session(512, chunk=8, share_prefix=True, cache=kind) for _ in range(2)
            )
            for each in (session, other):
                each.step(ids)
                assert each._rows.shared_bytes == 256 * session.state_bytes // 512, kind
            same(session, other)
            shared.append(session)
        assert shared[0]._prefixes.start != shared[1]._prefixes.start


def in_halves(data: bytes) -> bytes:
    """Make a decoder one of float16."""
    made = onnx.load_from_string(data)
    for weight in made.graph.initializer:
        if weight.data_type == TensorProto.FLOAT:
            half = numpy_helper.to_array(weight).clip(-6e4, 6e4).astype(np.float16)
            weight.CopyFrom(numpy_helper.from_array(half, weight.name))
    for value in (*made.graph.input, *made.graph.output, *made.graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    for node in made.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
    return made.SerializeToString()


@pytest.mark.parametrize("make", [decoders.gpt2, decoders.attention23])
def test_a_model_of_float16_keeps_its_caches_and_widens_none(make: Callable[[], bytes]) -> None:
    with tightship.load(in_halves(make()), shapes=SIZES, threads=1) as loaded:
        plain, named = (loaded.session(64, chunk=8, cache=c) for c in (None, "float16"))
        assert plain._programs is not named._programs
        same(plain, named)
        assert plain.state_bytes == named.state_bytes
        assert plain._programs.appends
        names = [step.name for step in plain._programs.program(1).first_lowered.steps]
        assert not any(name.startswith("past_key_values") for name in names), "widens a cache"
        with pytest.raises(GraphError, match=r"elements of float16 in the model.*leave out `cach"):
            loaded.session(64, cache="float32")
        narrow, other = (loaded.session(64, chunk=8, cache=c) for c in ("int8", None))
        difference = narrow.step(TEXT[0]).astype(float) - other.step(TEXT[0])
        assert np.abs(difference).max() < 0.1
