"""The outer form: whatever is changed in it is found."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightship
from tests.engine.stored.files import dense_file, parts_of
from tightship.engine.stored.container import PAGE_BYTES, holds_prepared, open_container
from tightship.engine.stored.model import StoredModel
from tightship.errors import FormatError


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return dense_file(tmp_path_factory.mktemp("whole")).read_bytes()


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("changed") / "model.tship"


def test_what_is_taken_apart_is_put_together_the_same(content: bytes) -> None:
    assert parts_of(content).assembled() == content


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_bit_flipped_outside_the_weights_is_refused(
    data: st.DataObject, content: bytes, changed: Path
) -> None:
    weights = range(PAGE_BYTES, PAGE_BYTES + len(parts_of(content).weights))
    place = data.draw(st.integers(0, len(content) - 1).filter(lambda byte: byte not in weights))
    flipped = bytearray(content)
    flipped[place] ^= 1 << data.draw(st.integers(0, 7))
    changed.write_bytes(flipped)
    with pytest.raises(FormatError):
        open_container(changed)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_file_that_was_cut_or_goes_on_is_refused(
    data: st.DataObject, content: bytes, changed: Path
) -> None:
    length = data.draw(st.integers(0, len(content) - 1))
    changed.write_bytes(data.draw(st.sampled_from([content[:length], content + content[:1]])))
    with pytest.raises(FormatError):
        open_container(changed)


def test_swapped_sections_are_refused(content: bytes, changed: Path) -> None:
    start = PAGE_BYTES + len(parts_of(content).weights)
    changed.write_bytes(content[:PAGE_BYTES] + content[start:] + content[PAGE_BYTES:start])
    with pytest.raises(FormatError, match="damaged"):
        open_container(changed)


def test_a_weight_of_another_bit_is_found_when_asked_and_harmless_else(
    content: bytes, changed: Path
) -> None:
    flipped = bytearray(content)
    flipped[PAGE_BYTES + 3] ^= 0x40
    changed.write_bytes(flipped)
    with tightship.load(changed) as model:
        assert model(np.ones((4, 32), np.float32)).shape == (4, 8)
    with pytest.raises(FormatError, match="does not match its checksum"):
        StoredModel(changed).verify()


def test_an_onnx_file_is_no_prepared_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x08\x09")
    assert not holds_prepared(path)
    with pytest.raises(FormatError, match="less than a header"):
        open_container(path)
