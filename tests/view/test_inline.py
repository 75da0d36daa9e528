"""Scripts and styles within pages."""

from base64 import b64encode
from hashlib import sha256

from tightship.view.inline import asset, digest, json_text, script_of


def test_scripts_are_joined_in_a_block_of_their_own():
    script = script_of(["units.js", "elements.js"])
    assert script.startswith("'use strict';\n{\n")
    assert script.index("formatBytes") < script.index("download")
    assert asset("units.js") in script


def test_the_digest_is_that_of_the_text():
    assert digest("a") == f"sha256-{b64encode(sha256(b'a').digest()).decode()}"


def test_json_cannot_end_its_element():
    assert json_text('"</script>&"') == '"\\u003c/script\\u003e\\u0026"'
