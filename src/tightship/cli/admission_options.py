"""Defines options of `tightship serve` about who may call by HTTP and gRPC."""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from tightship.cli.argument_types import byte_rate, count, host_name, rate
from tightship.cli.systemd import host_of
from tightship.errors import InputError

if TYPE_CHECKING:
    from tightship.driver.oip.admission.gate import Entry, Gate
    from tightship.driver.oip.request_log import Sinks

_LOG = logging.getLogger(__name__)


def add_admission(command: argparse.ArgumentParser) -> None:
    """Add the options."""
    command.add_argument(
        "--host-name",
        type=host_name,
        action="append",
        default=[],
        metavar="NAME",
        help="accept this name as Host of HTTP requests as well, such as that of a reverse proxy; "
        "by default a server at 127.0.0.1 accepts only addresses and localhost; may be repeated",
    )
    command.add_argument(
        "--trusted-proxy",
        action="append",
        default=[],
        metavar="ADDRESS|NETWORK",
        help="believe X-Forwarded-For of calls from here, such as 10.0.0.7 or 10.1.0.0/16, so that "
        "the clients of a proxy are told apart; may be repeated",
    )
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
    _add_quotas(command)


def _add_quotas(command: argparse.ArgumentParser) -> None:
    """Add the limits for each client."""
    command.add_argument(
        "--rate-limit",
        type=rate,
        action="append",
        default=[],
        metavar="N/s|m|h|d",
        help="answer at most N calls a second, minute, hour or day of each client, by its token or "
        "its address, and others with 429 and the time to wait; may be repeated, such as 100/s and "
        "1000000/d",
    )
    command.add_argument(
        "--byte-limit",
        type=byte_rate,
        action="append",
        default=[],
        metavar="BYTES/s|m|h|d",
        help="begin no call of a client, by its token or its address, whose requests and responses "
        "had more bytes than this a second, minute, hour or day, tensors in shared memory not "
        "counted; answer 429 and the time to wait; may be repeated, such as 64MiB/s and 1TiB/d",
    )
    command.add_argument(
        "--concurrency-limit",
        type=count,
        metavar="N",
        help="answer at most N calls of each client at once, and others with 429; a stream of "
        "gRPC is one call",
    )


def entry_of(options: argparse.Namespace) -> "Entry":
    """Read the files that the options name, and warn of clients that are not kept out.

    Raises:
        InputError: A file is not valid, or an option needs another one.
    """
    from tightship.driver.oip.admission.gate import Entry  # other commands do without the driver
    from tightship.driver.oip.http.browsers import is_loopback

    cert, key, tokens = options.tls_cert, options.tls_key, options.token_file
    if (cert is None) != (key is None):
        has, other = ("cert", "key") if key is None else ("key", "cert")
        raise InputError(f"`--tls-{has}` needs `--tls-{other}` as well.")
    hosts = {"http": options.http, "grpc": options.grpc}
    used = {name: where for name, where in hosts.items() if where is not None}
    given = {
        "token-file": tokens,
        "tls-cert": cert,
        "trusted-proxy": options.trusted_proxy,
        "rate-limit": options.rate_limit,
        "byte-limit": options.byte_limit,
        "concurrency-limit": options.concurrency_limit,
    }
    for option in () if used else [name for name, value in given.items() if value]:
        raise InputError(f"`--{option}` is for HTTP and gRPC; give `--http` or `--grpc` as well.")
    for name, where in used.items():
        if not is_loopback(host_of(where)):
            _warn(
                f"--{name} {host_of(where)}",
                has_tokens=tokens is not None,
                has_tls=cert is not None,
            )
    certificate = None
    if cert is not None:
        from tightship.driver.oip.admission.certificate import Certificate

        certificate = Certificate(cert, key)
    return Entry(frozenset(options.host_name), certificate, _gate(options), _sinks(options))


def _sinks(options: argparse.Namespace) -> "Sinks":
    """Return what takes the calls once they are over.

    Raises:
        InputError: The library of OpenTelemetry is not installed.
    """
    from tightship.driver.oip.request_log import log_line

    found: Sinks = (log_line,) if options.log_format == "json" else ()
    if not options.otel:
        return found
    try:
        from tightship.driver.oip.tracing import otlp

        return (*found, otlp())
    except ModuleNotFoundError as error:
        raise InputError(
            f"`--otel` needs the package `{error.name}`; pip install opentelemetry-sdk "
            "opentelemetry-exporter-otlp-proto-http."
        ) from None


def _gate(options: argparse.Namespace) -> "Gate | None":
    """Return the gate that the options ask for; what they do not is not imported.

    Raises:
        InputError: A file or an address is not valid.
    """
    from tightship.driver.oip.admission.gate import Gate

    tokens = proxies = quotas = None
    if options.token_file is not None:
        from tightship.driver.oip.admission.tokens import TokenFile

        tokens = TokenFile(options.token_file)
    if options.trusted_proxy:
        from tightship.driver.oip.admission.proxies import Proxies

        proxies = Proxies(options.trusted_proxy)
    if options.rate_limit or options.byte_limit or options.concurrency_limit:
        from tightship.driver.oip.admission.quotas import Quotas

        quotas = Quotas(options.rate_limit, options.byte_limit, options.concurrency_limit)
    return Gate(tokens, proxies, quotas) if tokens or proxies or quotas else None


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
