"""Makes a self-contained HTML page of a replay: the picture and a table of its figures."""

from base64 import b64encode
from hashlib import sha256
from html import escape

from tightship.quantity import format_bytes
from tightship.view.replay_picture import STYLE, Panel, ReplayPicture, replay_svg
from tightship.view.text import printable

PAGE_STYLE = """
:root{color-scheme:light dark}
body{font:14px system-ui,sans-serif;max-width:980px;margin:24px auto;padding:0 12px;
background:light-dark(#f4f5f6,#121518);color:light-dark(#1c2024,#e8eaed)}
h1{font-size:20px}table{border-collapse:collapse;margin-top:18px;width:100%}
th,td{text-align:right;padding:4px 10px;border-bottom:1px solid light-dark(#dfe2e5,#2b3137)}
th:first-child,td:first-child{text-align:left}
td{white-space:nowrap}.wide{overflow-x:auto}.wide svg{min-width:720px}
"""

_TITLES = ("resource", "peak held", "of live", "ns/operation", "refused")


def replay_page(picture: ReplayPicture) -> str:
    """Make the HTML document of a replay, without scripts and without requests to the network.

    Names are escaped, so they stay text whatever characters they contain.
    """
    title = escape(printable(picture.title))
    policy = f"default-src 'none'; style-src '{_hash(PAGE_STYLE)}' '{_hash(STYLE)}'"
    rows = "\n".join(_row(picture, panel) for panel in picture.panels)
    head = "".join(f'<th scope="col">{title}</th>' for title in _TITLES)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{title}, replayed</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
<h1>{title}, replayed</h1>
<div class="wide">{replay_svg(picture)}</div>
<div class="wide"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
</body>
</html>
"""


def _row(picture: ReplayPicture, panel: Panel) -> str:
    held_bytes = max(panel.held_bytes, default=0)
    ratio = held_bytes / picture.peak_live_bytes if picture.peak_live_bytes else 1.0
    cells = (
        escape(printable(panel.name)), format_bytes(held_bytes), f"{ratio:.3f}x",
        f"{panel.ns_per_operation:.0f}", f"{panel.refused_count:,}",
    )  # fmt: skip
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
