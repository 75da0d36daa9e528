"""Defines options of the commands that start a driver, or query one."""

import argparse
from collections.abc import Mapping

from tightship.cli.admission_options import add_admission
from tightship.cli.argument_types import (
    address,
    address_or_systemd,
    count,
    pause,
    rate,
    shape,
    size,
)
from tightship.cli.control_options import add_control
from tightship.cli.log_limit import LINES_A_SECOND
from tightship.cli.text_limit_options import add_text_limits
from tightship.driver.oip.limits import LIMITS

ENDPOINTS: Mapping[str, str] = {"http": "HTTP", "grpc": "gRPC"}

GRACE_S = 5.0
"""Seconds in which a load balancer that polls `ready` every second or two sees the answer."""

SOCKET = "driver.sock in this user's folder for running programs"


def add_serve(command: argparse.ArgumentParser, model: str) -> None:
    """Add the options of `tightship serve`; `model` describes a model in the help text."""
    command.add_argument(
        "models", nargs="*", metavar="MODEL|DIR", help=f"{model}; or a folder of them"
    )
    command.add_argument(
        "--shape",
        type=shape,
        action="append",
        default=[],
        metavar="[MODEL:]NAME=1x3x224x224",
        help="shape to plan an input with symbolic lengths for, in every model whose input accepts "
        "the shape, or in MODEL alone; by default fitting lengths are chosen; requests may have "
        "other lengths; may be repeated",
    )
    command.add_argument("--socket", metavar="PATH", help=f"where to listen; by default {SOCKET}")
    add_control(command)
    _add_protocol(command)
    add_text_limits(command)
    command.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="USER",
        help="let this user connect to the socket as well, by name or number; may be repeated",
    )
    command.add_argument(
        "--trust",
        action="append",
        default=[],
        metavar="FOLDER",
        help="map clients' files in this folder, though they might be truncated; the folder must "
        "belong to this user or root and not be writable by others; may be repeated",
    )
    command.add_argument(
        "--threads",
        type=count,
        metavar="N",
        help="executions at once, and threads of each kernel of language models and of clients' "
        "models (default 1, or the "
        "largest count of an instance_group in a model repository)",
    )
    _add_log(command)


def _add_log(command: argparse.ArgumentParser) -> None:
    """Add the options about messages and traces."""
    command.add_argument(
        "--log",
        choices=("info", "warning", "error"),
        default="warning",
        help="level of messages on standard error (default warning); info adds refused requests "
        "with their clients",
    )
    command.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="form of these messages (default text); json writes an object a line, at level info "
        "one for each call of the protocol, and gives calls ids: that of X-Request-ID, or a new "
        "one, which the response has too",
    )
    command.add_argument(
        "--log-limit",
        type=rate,
        default=(LINES_A_SECOND, 1),
        metavar="N/s|m|h|d",
        help="write at most N messages a second, minute, hour or day, and then how many were left "
        f"out (default {LINES_A_SECOND}/s); errors are always written",
    )
    command.add_argument(
        "--otel",
        action="store_true",
        help="send a span of each call of the protocol by OpenTelemetry's own library, which "
        "variables such as OTEL_EXPORTER_OTLP_ENDPOINT direct",
    )


def _add_protocol(command: argparse.ArgumentParser) -> None:
    """Add the options of the inference protocol: its addresses, and limits for its clients."""
    for endpoint, name in ENDPOINTS.items():
        command.add_argument(
            f"--{endpoint}",
            type=address_or_systemd if endpoint == "http" else address,
            metavar="[HOST:]PORT",
            help=f"serve the Open Inference Protocol by {name} as well, at 127.0.0.1 unless HOST "
            "says otherwise; without --token-file every client that can connect may use it"
            + ("; `systemd` takes the socket that systemd passes" if endpoint == "http" else ""),
        )
    command.add_argument(
        "--allow-client-shm",
        action="store_true",
        help="let clients of the protocol read and write this user's shared memory by name",
    )
    add_admission(command)
    command.add_argument(
        "--grace",
        type=pause,
        default=GRACE_S,
        metavar="SECONDS",
        help="time after SIGTERM in which requests are answered while `ready` is false, before "
        f"connections are refused (default {GRACE_S:g}); a second SIGTERM ends it at once, and "
        "SIGINT skips it",
    )
    command.add_argument(
        "--drain",
        type=pause,
        default=LIMITS.drain_s,
        metavar="SECONDS",
        help="time after that in which requests that have begun may end; then their runs end "
        f"after the current step (default {LIMITS.drain_s:g})",
    )
    command.add_argument(
        "--max-connections",
        type=count,
        metavar="N",
        help="most clients connected at once, by HTTP and by gRPC each, and most calls of gRPC "
        f"(default {LIMITS.connections_max}, or fewer if the system allows less than 1024 open "
        "files); a further client replaces one that makes no request",
    )
    command.add_argument(
        "--max-body",
        type=size,
        metavar="BYTES",
        help="largest request of the protocol, also after decompression (default "
        f"{LIMITS.body_bytes_max >> 20}MiB); tensors in shared memory do not count",
    )


def add_pools(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship pools`."""
    command.add_argument(
        "--socket", metavar="PATH", help=f"where the driver listens; by default {SOCKET}"
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")
