"""`tightship serve`: a driver process for models, until it is told to end."""

import argparse
import gc
import logging
import pwd
import resource
import signal
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tightship._core import use_one_heap
from tightship.cli.output import show
from tightship.cli.planned_shapes import Given, check_used, shapes_of
from tightship.driver.memory.trusted import trusted
from tightship.driver.oip.limits import LIMITS, FaceLimits
from tightship.driver.oip.repository import ModelSource
from tightship.driver.process import Driver, Listening
from tightship.driver.rim.access import Access
from tightship.driver.rim.listening import socket_path
from tightship.driver.rim.secret import kept_secret
from tightship.errors import InputError
from tightship.prepared_cache import UnusableCacheError, user_folder

COLLECT_AFTER = 700
"""Objects to be made while serving before cycles are looked for: Python's default. The library of
each connection leaves some, and a loaded model is made of many more objects than a request."""

_LOG = logging.getLogger(__name__)
FILES_PER_CONNECTION = 8
"""Files that the system must let this process open for each connection that it takes by default:
by HTTP and gRPC, lent, on its way in and out, and as many for clients of the socket."""
SUFFIXES = (".onnx", ".tship")


def run(options: argparse.Namespace) -> int:
    """Load models, listen and serve; SIGTERM drains the server, SIGINT ends it at once."""
    use_one_heap()
    logging.basicConfig(format="%(asctime)s %(message)s", level=options.log.upper())
    given = [Path(each) for each in options.models]
    folders = _folders(given)
    path = socket_path() if options.socket is None else Path(options.socket)
    where = Listening(
        path,
        options.http,
        options.grpc,
        allow_client_shm=options.allow_client_shm,
        limits=_limits(options.max_connections, options.max_body, options.grace),
        access=_access(options.allow, options.trust, options.socket),
        host_names=frozenset(options.host_name),
    )
    check_used(model_files(given, folders), options.shape)
    sources = partial(_sources, given, folders, options.shape)
    driver = Driver(sources, where, threads=options.threads or 1, secret=_secret())
    signal.signal(signal.SIGINT, lambda *_: driver.stop())
    signal.signal(signal.SIGTERM, lambda *_: driver.drain())
    show(f"serving {', '.join(driver.names) or 'models of clients'} at {_places(where, driver)}\n")
    sys.stdout.flush()  # whoever started it may be waiting for the line
    gc.set_threshold(COLLECT_AFTER)
    driver.serve()
    return 0


def _folders(given: Sequence[Path]) -> frozenset[Path]:
    """Those that are folders of models; the others are there."""
    folders = frozenset(path for path in given if path.is_dir())
    for path in given:
        if not path.exists():
            raise InputError(
                f"There is no model at `{path}`; name an ONNX file, a prepared model (.tship) or a "
                "folder of them."
            )
        if path in folders and not _inside(path):
            raise InputError(f"There is no model (`.onnx`, `.tship`) in the folder `{path}`.")
    return folders


def _access(users: Sequence[str], folders: Sequence[str], socket: str | None) -> Access:
    if users and socket is None:
        raise InputError(
            "Others cannot enter the folder of this user; with `--allow` name a `--socket` in "
            "a folder that they can enter."
        )
    return Access(frozenset(map(_user, users)), trusted(map(Path, folders)))


def _limits(connections: int | None, body_bytes: int | None, grace_s: float) -> FaceLimits:
    """Of clients of the protocol: what was given, else the usual."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    usual = max(1, min(LIMITS.connections_max, files // FILES_PER_CONNECTION))
    count = connections or usual
    needed = 2 * count
    if connections is not None and needed > files:
        raise InputError(
            f"`--max-connections {count}` takes {needed} files, two for each; the system lets "
            f"this process open {files}. Allow it more (`ulimit -n {needed + files}`), or name "
            f"at most {files // 2}."
        )
    return replace(
        LIMITS,
        connections_max=count,
        body_bytes_max=body_bytes or LIMITS.body_bytes_max,
        grace_s=grace_s,
    )


def _user(name: str) -> int:
    """Of a name, or a number."""
    if name.isascii() and name.isdigit():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise InputError(f"There is no user `{name}` here.") from None


def _places(where: Listening, driver: Driver) -> str:
    hosts = {"http": where.http, "grpc": where.grpc}
    said = [
        f"{face}://{_bracketed(host[0])}:{driver.ports[face]}"
        for face, host in hosts.items()
        if host is not None
    ]
    return ", ".join([str(where.socket), *said])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _sources(
    given: Sequence[Path], folders: Container[Path], shapes: Given
) -> Mapping[str, ModelSource]:
    files = model_files(given, folders)
    return {
        name: ModelSource(file, shapes_of(name, file, shapes) or None)
        for name, file in files.items()
    }


def _secret() -> bytes | None:
    """Of this user's drivers; None, and so no compilation cache, where none can be kept."""
    try:
        return kept_secret(user_folder() / "driver")
    except (UnusableCacheError, InputError, OSError) as error:
        _LOG.warning("There is no compilation cache: %s", error)
        return None


def model_files(given: Sequence[Path], folders: Container[Path]) -> dict[str, Path]:
    """Files by the name that clients use: without its suffix; a folder is all models in it.

    Raises:
        InputError: Two files have one name.
    """
    found: dict[str, Path] = {}
    for path in given:
        for file in _inside(path) if path in folders else [path]:
            if file.stem in found:
                raise InputError(
                    f"`{found[file.stem]}` and `{file}` would both be called `{file.stem}`; "
                    "rename one."
                )
            found[file.stem] = file
    return found


def _inside(folder: Path) -> list[Path]:
    """The models in a folder; none where it is gone."""
    return sorted(each for each in folder.glob("*") if each.suffix in SUFFIXES)
