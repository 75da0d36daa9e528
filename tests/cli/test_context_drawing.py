"""`tightship plan --context -o`: the picture of a decoder's sessions."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests import decoders
from tests.processor import needs_avx512
from tightship.cli.main import main
from tightship.quantity import format_bytes

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.llama())
    return str(path)


def test_a_picture_has_the_peaks_of_the_table(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = tmp_path / "sessions.svg"
    plan = ["plan", file, "--context", "2k,1k", "--sessions", "4,1", "--json"]
    assert main(plan) == 0
    plain = capsys.readouterr().out
    assert main([*plan, "-o", str(drawn)]) == 0
    assert capsys.readouterr().out == plain
    root = ET.parse(drawn).getroot()
    hints = {each.text for each in root.iter(f"{SVG}title")}
    for each in json.loads(plain)["contexts"]:
        for peak in each["peaks"]:
            noun = "session" if peak["sessions"] == 1 else "sessions"
            words = f"{peak['sessions']} {noun} of {each['context']:,} tokens"
            assert f"{words}: {format_bytes(peak['peak_bytes'])}" in hints
    lines = [each.get("points", "").split() for each in root.iter(f"{SVG}polyline")]
    assert [len(points) for points in lines] == [3, 3]


@needs_avx512  # the limit has no room for the buffer of NumPy's BLAS
def test_a_picture_of_the_largest_contexts(file: str, tmp_path: Path) -> None:
    limit = ["--sessions", "1,4", "--max-memory", "64MiB"]
    page = tmp_path / "sessions.html"
    assert main(["plan", file, *limit, "-o", str(page)]) == 0
    assert page.read_text().count('class="tc-most') == 2
    near = tmp_path / "near.svg"  # one session's largest context is far to the right of 24k
    assert main(["plan", file, "--context", "24k", *limit, "-o", str(near)]) == 0
    assert near.read_text().count('class="tc-most') == 1
    none = tmp_path / "none.svg"
    assert main(["plan", file, *limit[:-1], "1MiB", "-o", str(none)]) == 1
    assert none.read_text().count("no context fits") == 2
