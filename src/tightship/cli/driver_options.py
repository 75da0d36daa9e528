"""Defines options of the commands that start a driver, or query one."""

import argparse
from collections.abc import Mapping

from tightship.cli.words import address, count, host_name, pause, shape, size
from tightship.driver.oip.limits import LIMITS

FACES: Mapping[str, str] = {"http": "HTTP", "grpc": "gRPC"}

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
        help="what to plan an input for whose lengths files leave open, of every model whose input "
        "may have the shape, or of one; otherwise lengths that fit are chosen; requests may have "
        "others; may be repeated",
    )
    command.add_argument("--socket", metavar="PATH", help=f"where to listen; by default {SOCKET}")
    _add_protocol(command)
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
        help="map files below it that clients hand over, though they could be shortened; it must "
        "belong to this user or root and not be writable by others; may be repeated",
    )
    command.add_argument(
        "--threads",
        type=count,
        metavar="N",
        help="executions at once, and threads of each kernel of clients' models (1)",
    )
    command.add_argument(
        "--log",
        choices=("info", "warning", "error"),
        default="warning",
        help="what to tell on standard error (warning); info: refusals as well, with their clients",
    )


def _add_protocol(command: argparse.ArgumentParser) -> None:
    """Add the options of the inference protocol: its addresses, and limits for its clients."""
    for face, name in FACES.items():
        command.add_argument(
            f"--{face}",
            type=address,
            metavar="[HOST:]PORT",
            help=f"serve the Open Inference Protocol by {name} as well, at 127.0.0.1 unless HOST "
            "says otherwise; every client that can connect may use it",
        )
    command.add_argument(
        "--allow-client-shm",
        action="store_true",
        help="let clients of the protocol name shared memory of this user, to read and write it",
    )
    command.add_argument(
        "--host-name",
        type=host_name,
        action="append",
        default=[],
        metavar="NAME",
        help="answer HTTP requests whose Host is this name as well, such as that of a reverse proxy"
        "; a server at 127.0.0.1 answers only to addresses and localhost otherwise; may be "
        "repeated",
    )
    command.add_argument(
        "--grace",
        type=pause,
        default=GRACE_S,
        metavar="SECONDS",
        help="after SIGTERM, answer requests for so long while `ready` is false, before "
        f"connections are refused ({GRACE_S:g}); a second SIGTERM ends it, SIGINT has none",
    )
    command.add_argument(
        "--max-connections",
        type=count,
        metavar="N",
        help="clients connected at once by HTTP, and by gRPC, and calls of gRPC "
        f"({LIMITS.connections_max}, fewer where the system allows less than 1024 files); one more "
        "takes the place of one that makes no request",
    )
    command.add_argument(
        "--max-body",
        type=size,
        metavar="BYTES",
        help="what a request of the protocol may have, unpacked too "
        f"({LIMITS.body_bytes_max >> 20}MiB); tensors in shared memory do not count",
    )


def add_pools(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship pools`."""
    command.add_argument(
        "--socket", metavar="PATH", help=f"where the driver listens; by default {SOCKET}"
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")
