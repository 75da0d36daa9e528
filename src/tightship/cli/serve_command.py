"""Implements `tightship serve`: a driver process for models, until a signal ends it."""

import argparse
import gc
import logging
import pwd
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tightship._core import use_one_heap
from tightship.cli.admission_options import entry_of
from tightship.cli.control_options import POLL_S
from tightship.cli.log_limit import LogLimit
from tightship.cli.output import show
from tightship.cli.served_sources import ServedSources
from tightship.cli.systemd import SYSTEMD, host_of, listening_socket, tell
from tightship.cli.text_limit_options import text_limits
from tightship.driver.memory.trusted import trusted
from tightship.driver.oip.limits import LIMITS, EndpointLimits
from tightship.driver.oip.model_control import ALL, FREE_CONTROL, ModelControl
from tightship.driver.process import Driver, Listening
from tightship.driver.server.access import Access
from tightship.driver.server.secret import kept_secret
from tightship.driver.types.socket_path import socket_path
from tightship.errors import InputError
from tightship.prepared_cache import UnusableCacheError, user_folder

COLLECT_AFTER = 700
"""New objects after which garbage is collected while serving: Python's default, because the library
of each connection leaves cycles."""

_LOG = logging.getLogger(__name__)
FILES_PER_CONNECTION = 8
"""Open files that the default number of connections assumes for each: for HTTP and gRPC,
while connecting and closing, and as many for clients of the socket."""


def run(options: argparse.Namespace) -> int:
    """Load models, listen and serve; SIGTERM drains the server, SIGINT ends it at once."""
    use_one_heap()
    _log_as(options)
    given, repositories = map(_paths, (options.models, options.model_repository))
    sources = replace(
        ServedSources.of(given, repositories, options.shape),
        threads=options.threads,
        max_memory=options.max_memory,
        share=options.share,
        activations=options.activations,
    )
    if options.activations and not sources.has_gguf:
        raise InputError("`--activations` is for GGUF files, and none is served; leave it out.")
    control = _control(options)
    if options.http == SYSTEMD:
        options.http = listening_socket()
    path = socket_path() if options.socket is None else Path(options.socket)
    where = Listening(
        path,
        options.http,
        options.grpc,
        allow_client_shm=options.allow_client_shm,
        limits=replace(
            _limits(options.max_connections, options.max_body),
            grace_s=options.grace,
            drain_s=options.drain,
        ),
        access=_access(options.allow, options.trust, options.socket),
        entry=entry_of(options),
    )
    threads = options.threads or sources.instance_count()
    texts = text_limits(options) if sources.has_texts else None
    driver = Driver(sources, where, threads=threads, secret=_secret(), control=control, texts=texts)
    signal.signal(signal.SIGINT, lambda *_: driver.stop())
    signal.signal(signal.SIGTERM, lambda *_: _drain(driver))
    show(f"serving {', '.join(driver.names) or 'models of clients'} at {_places(where, driver)}\n")
    sys.stdout.flush()  # the parent process may be waiting for this line
    gc.set_threshold(COLLECT_AFTER)
    tell("READY=1")
    driver.serve()
    return 0


def _drain(driver: Driver) -> None:
    tell("STOPPING=1")
    driver.drain()


def _log_as(options: argparse.Namespace) -> None:
    """Log to standard error, as lines of text or of JSON, and not more of them than the limit."""
    handler = logging.StreamHandler()
    handler.addFilter(LogLimit(handler, *options.log_limit))
    if options.log_format == "json":
        from tightship.cli.log_format import JsonLines

        handler.setFormatter(JsonLines())
    text = "%(asctime)s %(message)s"
    logging.basicConfig(format=text, level=options.log.upper(), handlers=[handler])


def _paths(texts: Sequence[str]) -> list[Path]:
    return [Path(each) for each in texts]


def _control(options: argparse.Namespace) -> ModelControl:
    """Return the rules that the options give.

    Raises:
        InputError: An option needs another mode.
    """
    mode = options.model_control_mode
    if options.load_model and mode != "explicit":
        raise InputError("`--load-model` needs `--model-control-mode explicit`.")
    if options.repository_poll_secs is not None and mode != "poll":
        raise InputError("`--repository-poll-secs` needs `--model-control-mode poll`.")
    if mode == "explicit":
        return ModelControl(tuple(dict.fromkeys(options.load_model)))
    if mode == "poll":
        period_s = options.repository_poll_secs or POLL_S
        return ModelControl((ALL,), takes_calls=False, poll_s=period_s)
    if mode == "none" or options.model_repository:
        return ModelControl((ALL,), takes_calls=False)
    return FREE_CONTROL


def _access(users: Sequence[str], folders: Sequence[str], socket: str | None) -> Access:
    if users and socket is None:
        raise InputError(
            "The default socket is in a folder that other users cannot enter; with `--allow` give "
            "a `--socket` in a folder that they can enter."
        )
    return Access(frozenset(map(_user, users)), trusted(map(Path, folders)))


def _limits(connections: int | None, body_bytes: int | None) -> EndpointLimits:
    """Make the limits of clients of the protocol from the options and defaults."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    usual = max(1, min(LIMITS.connections_max, files // FILES_PER_CONNECTION))
    count = connections or usual
    needed = 2 * count
    if connections is not None and needed > files:
        raise InputError(
            f"`--max-connections {count}` needs {needed} open files, two for each; the system lets "
            f"this process open {files}. Raise the limit (`ulimit -n {needed + files}`), or give "
            f"at most {files // 2}."
        )
    return replace(
        LIMITS,
        connections_max=count,
        body_bytes_max=body_bytes or LIMITS.body_bytes_max,
    )


def _user(name: str) -> int:
    """Return the number of a user from a name or a number."""
    if name.isascii() and name.isdigit():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise InputError(
            f"Unknown user `{name}`; give a name or a number of this system."
        ) from None


def _places(where: Listening, driver: Driver) -> str:
    places, secure = {"http": where.http, "grpc": where.grpc}, where.entry.certificate is not None
    said = [
        f"{endpoint}{'s' * secure}://{_bracketed(host_of(place))}:{driver.ports[endpoint]}"
        for endpoint, place in places.items()
        if place is not None
    ]
    return ", ".join([str(where.socket), *said])


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _secret() -> bytes | None:
    """Return the secret of this user's drivers; None if it cannot be kept, for no cache."""
    try:
        return kept_secret(user_folder() / "driver")
    except (UnusableCacheError, InputError, OSError) as error:
        _LOG.warning("The compilation cache is off: %s", error)
        return None
