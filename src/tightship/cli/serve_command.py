"""`tightship serve`: a driver process for models, until it is told to end."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from tightship.cli.output import show
from tightship.driver.rim.listening import socket_path
from tightship.driver.rim.server import Server
from tightship.errors import InputError
from tightship.loading import load
from tightship.model import Model

SUFFIXES = (".onnx", ".tship")


def run(options: argparse.Namespace) -> int:
    """Load models, listen, serve; SIGINT and SIGTERM end it."""
    files = model_files([Path(each) for each in options.models])
    path = socket_path() if options.socket is None else Path(options.socket)
    models: dict[str, Model] = {}
    for name, file in files.items():
        models[name] = load(file)
    server = Server(path, models, threads=options.threads or 1)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    show(f"serving {', '.join(models) or 'models of clients'} at {path}\n")
    sys.stdout.flush()  # whoever started it may be waiting for the line
    server.serve()
    return 0


def model_files(given: Sequence[Path]) -> dict[str, Path]:
    """Files by the name that clients use: without its suffix; a folder is all models in it.

    Raises:
        InputError: Two files have one name, or a folder has no model.
    """
    found: dict[str, Path] = {}
    for path in given:
        inside = sorted(each for each in path.glob("*") if each.suffix in SUFFIXES)
        if path.is_dir() and not inside:
            raise InputError(f"There is no model (`.onnx`, `.tship`) in the folder `{path}`.")
        for file in inside if path.is_dir() else [path]:
            if file.stem in found:
                raise InputError(
                    f"`{found[file.stem]}` and `{file}` would both be called `{file.stem}`; "
                    "rename one."
                )
            found[file.stem] = file
    return found
