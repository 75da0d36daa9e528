"""Live page of a driver: one HTML document that sends requests to the driver alone."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from string import Template


@cache
def page() -> bytes:
    """Return the page; it reads `/status` every second, and its policy forbids other requests."""
    style, script = _asset("live.css"), f"'use strict';\n{{\n{_asset('live.js')}}}\n"
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src data:; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}'"
    )
    html = Template(_asset("live.html"))
    return html.substitute(policy=policy, style=style, script=script).encode()


def _asset(name: str) -> str:
    return files("tightship.driver.oip").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
