"""Puts scripts and styles into pages, and allows them by their digest in the pages' policy."""

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from importlib.resources import files


def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return files("tightship.view").joinpath("assets", name).read_text(encoding="utf-8")


def script_of(names: Iterable[str]) -> str:
    """Join scripts into one whose names no other script sees."""
    return "'use strict';\n{\n" + "\n".join(map(asset, names)) + "}\n"


def digest(text: str) -> str:
    """Return the source by which a policy of content security allows a script or style."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def json_text(plain: str) -> str:
    """Escape JSON so that no name in it, such as `</script>`, can end the script element."""
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
