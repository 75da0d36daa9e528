"""Python blocks of pages run in order, and commands print what their pages show.

A block runs after all blocks before it on its page, in a folder that holds `model.onnx`,
`cell.onnx`, `decoder.onnx`, `encoder.gguf` and `reranker.gguf`, and a block of TOML as
`tightship.toml`. Where a page marks a block `<!-- not run: REASON -->`, or `<!-- needs MODULE -->`
for a module that is not installed, only its syntax is checked. The page about calls of a driver has
one that listens, at a free port in the place of 8000. Commands without output are understood by the
parsers, and run where they end by themselves and read no file but those of the folder.
"""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.decoders import llama
from tests.docs.fences import ROOT, differences, fences, sessions
from tests.frontend.gguf.encoders import embedding_model
from tests.small_models import cell, dense
from tightship.cli.arguments import parser

PAGES = [
    ROOT / "README.md",
    *(
        page
        for folder in ("tutorial", "how-to", "explanation")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
]
WITH_PYTHON = [page for page in PAGES if fences(page, "python")]
CALLS = ROOT / "docs/how-to/call-a-driver.md"
ENDING = {"run", "prepare", "view"}
"""Commands that end by themselves and need no more than a model."""
WITH_SESSIONS = [page for page in PAGES if fences(page, "console")]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.fixture
def folder(monkeypatch):
    """A short-named working folder, as paths of sockets are short, with models and no caches."""
    place = Path(tempfile.mkdtemp(prefix="pages"))
    (place / "model.onnx").write_bytes(dense()[0])
    (place / "cell.onnx").write_bytes(cell())
    (place / "decoder.onnx").write_bytes(llama())
    (place / "encoder.gguf").write_bytes(embedding_model())
    (place / "reranker.gguf").write_bytes(embedding_model(pooling=4, labels=1))
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.chdir(place)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def port(folder):
    """The port of a driver that serves the models of the folder."""
    models = [str(folder / name) for name in ("model.onnx", "cell.onnx")]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = str(probe.getsockname()[1])
    command = [sys.executable, "-m", "tightship.cli", "serve", *models, "--http"]
    driver = subprocess.Popen([*command, number], stdout=subprocess.PIPE)
    assert b"serving" in driver.stdout.readline()
    yield number
    driver.terminate()
    driver.communicate(timeout=60)


def write_budgets(page: Path) -> None:
    """Write the file of budgets that a page shows, if it does, into the working folder."""
    for fence in fences(page, "toml"):
        Path("tightship.toml").write_text(fence.text, encoding="utf-8")


def run_python(page: Path, port: str = "8000") -> None:
    write_budgets(page)
    names: dict[str, object] = {"__name__": page.stem}
    for fence in fences(page, "python"):
        text = fence.text.replace("8000", port)
        code = compile("\n" * (fence.line - 1) + text, str(page), "exec")
        if not fence.reason:
            exec(code, names)


@pytest.mark.parametrize("page", [each for each in WITH_PYTHON if each != CALLS], ids=named)
@pytest.mark.usefixtures("folder")
def test_the_python_of_a_page_runs(page):
    run_python(page)


def test_the_calls_of_a_driver_run(port):
    run_python(CALLS, port)


@pytest.mark.parametrize("page", WITH_SESSIONS, ids=named)
@pytest.mark.usefixtures("folder")
def test_a_command_prints_what_its_page_shows(page):
    write_budgets(page)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for command, shown in sessions(page):
        ran = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            check=False,
            text=True,
            env={**os.environ, "PATH": path},
        )
        assert differences(shown, ran.stderr + ran.stdout) == [], (command, ran.stdout, ran.stderr)


def commands() -> list[list[str]]:
    """Arguments of each `tightship` that guides and tutorials tell the reader to type."""
    lines = [
        line
        for page in PAGES[1:]
        for fence in fences(page, "sh")
        for line in fence.text.replace("\\\n", " ").splitlines()
    ]
    own = [line for line in lines if line.startswith("tightship ")]
    return [shlex.split(line, comments=True)[1:] for line in own]


def of_the_folder(arguments: list[str]) -> bool:
    """Whether a command ends by itself and reads `model.onnx`, or the model of onnx, alone."""
    files = {word for word in arguments if word.endswith(".onnx") or "/" in word}
    return arguments[0] in ENDING and files <= {"model.onnx"}


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_a_command_is_understood(arguments):
    parser().parse_args(arguments)


@pytest.mark.parametrize("arguments", [*filter(of_the_folder, commands())], ids=" ".join)
def test_a_command_runs(arguments, folder):
    command = [sys.executable, "-m", "tightship.cli", *arguments]
    ran = subprocess.run(command, capture_output=True, check=False, cwd=folder, text=True)
    assert ran.returncode == 0, ran.stderr
