"""A process that holds memory until it is told to end."""

import subprocess
import sys

MIB = 1 << 20
HOLDING = f"held = bytearray({64 * MIB}); print('ready', flush=True); input()"


def started(code: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout.readline() == "ready\n"
    return process


def ended(process: "subprocess.Popen[str]") -> None:
    process.communicate("\n", timeout=60)
