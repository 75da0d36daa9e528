"""Defines options of `tightship serve` about who may call by HTTP and gRPC."""

import argparse
import logging
from pathlib import Path

from tightship.driver.oip.admission.gate import Entry, Gate
from tightship.driver.oip.http.browsers import is_loopback
from tightship.errors import InputError

_LOG = logging.getLogger(__name__)


def add_admission(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    command.add_argument(
        "--tls-cert",
        type=Path,
        metavar="FILE",
        help="serve HTTP and gRPC by TLS only, with this certificate (PEM, followed by those that "
        "signed it); the file is read again when it changes",
    )
    command.add_argument(
        "--tls-key",
        type=Path,
        metavar="FILE",
        help="key of the certificate (PEM, not encrypted)",
    )
    command.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="answer only calls by HTTP and gRPC with a bearer token of this file, apart from "
        "whether the server is live and ready; a line is a token or a client's name and its "
        "token; the file is read again when it changes",
    )


def entry_of(options: argparse.Namespace) -> Entry:
    """Read the files that the options name, and warn of clients that are not kept out.

    Raises:
        InputError: A file is not valid, or an option needs another one.
    """
    cert, key, tokens = options.tls_cert, options.tls_key, options.token_file
    if (cert is None) != (key is None):
        given, other = ("cert", "key") if key is None else ("key", "cert")
        raise InputError(f"`--tls-{given}` needs `--tls-{other}` as well.")
    hosts = {"http": options.http, "grpc": options.grpc}
    used = {name: where for name, where in hosts.items() if where is not None}
    if not used and (cert or tokens):
        option = "--token-file" if tokens else "--tls-cert"
        raise InputError(f"`{option}` is for HTTP and gRPC; give `--http` or `--grpc` as well.")
    for name, (host, _) in used.items():
        if not is_loopback(host):
            _warn(f"--{name} {host}", has_tokens=tokens is not None, has_tls=cert is not None)
    certificate = gate = None
    if cert is not None:
        from tightship.driver.oip.admission.certificate import Certificate

        certificate = Certificate(cert, key)
    if tokens is not None:
        from tightship.driver.oip.admission.tokens import TokenFile

        gate = Gate(TokenFile(tokens))
    return Entry(frozenset(options.host_name), certificate, gate)


def _warn(where: str, *, has_tokens: bool, has_tls: bool) -> None:
    if not has_tokens:
        _LOG.warning(
            "`%s` is reachable from other machines, and every client that reaches it may call; "
            "give `--token-file`.",
            where,
        )
    elif not has_tls:
        _LOG.warning(
            "`%s` is reachable from other machines without TLS, so that tokens can be read on the "
            "way; give `--tls-cert` and `--tls-key`, or let only a proxy with TLS reach it.",
            where,
        )
