"""The commands and programs of the page "Serve a model", in its order."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("tritonclient.http")
from tests.driver.oip.serve_process import serve

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "serve-a-model.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]
SHELL = [text for kind, text in BLOCKS if kind == "sh"]


def ran(folder, *command):
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def at(text, served):
    """A block with the addresses of a test's server."""
    assert "127.0.0.1:8000" in text or "localhost:8000" in text
    text = text.replace("127.0.0.1:8000", served.http)
    return text.replace("localhost:8000", f"localhost:{served.http_port}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the model of the page."""
    found = tmp_path_factory.mktemp("page")
    ran(found, sys.executable, "-c", PYTHON[0])
    return found


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs the program curl")
def test_the_calls_of_the_page_have_its_answers(folder):
    (answer,) = [text for kind, text in BLOCKS if kind == "json"]
    (output,) = [text for kind, text in BLOCKS if kind == "text"]
    with serve(folder / "net.onnx") as served:
        told, said = json.loads(ran(folder, "sh", "-c", at(SHELL[2], served))), json.loads(answer)
        data, wanted = (each["outputs"][0].pop("data") for each in (told, said))
        assert told == said
        assert data == pytest.approx(wanted, rel=1e-5)  # which processors round differently
        assert ran(folder, sys.executable, "-c", at(PYTHON[1], served)) == output


@pytest.mark.skipif(
    None in (shutil.which("curl"), shutil.which("openssl")), reason="needs curl and openssl"
)
def test_the_token_and_certificate_of_the_page_let_its_client_in(folder):
    making, _, serving = SHELL[3].partition("tightship serve net.onnx")
    ran(folder, "sh", "-c", making)
    options = [word for word in serving.split() if word.startswith("--t")]
    assert options == ["--token-file", "--tls-cert", "--tls-key"]
    files = (folder / name for name in ("tokens", "tls.crt", "tls.key"))
    given = [word for pair in zip(options, files, strict=True) for word in pair]
    with serve(folder / "net.onnx", *given) as served:
        said = ran(folder, "sh", "-c", at(SHELL[4], served))
        assert '"name": "net"' in said
        unknown = at(SHELL[4], served).replace("Bearer", "Bear")
        assert "Authorization: Bearer TOKEN" in ran(folder, "sh", "-c", unknown)
