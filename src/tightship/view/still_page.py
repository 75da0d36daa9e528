"""Makes a self-contained HTML page of a still picture and a table of its figures."""

from collections.abc import Iterable, Sequence
from html import escape

from tightship.view.inline import digest
from tightship.view.marks import escaped

PAGE_STYLE = """
:root{color-scheme:light dark}
body{font:14px system-ui,sans-serif;max-width:980px;margin:24px auto;padding:0 12px;
background:light-dark(#f4f5f6,#121518);color:light-dark(#1c2024,#e8eaed)}
h1{font-size:20px}table{border-collapse:collapse;margin-top:18px;width:100%}
th,td{text-align:right;padding:4px 10px;border-bottom:1px solid light-dark(#dfe2e5,#2b3137)}
th:first-child,td:first-child{text-align:left}
td{white-space:nowrap}.wide{overflow-x:auto}.wide svg{min-width:720px}
"""


def still_page(
    title: str, svg: str, style: str, titles: Sequence[str], rows: Iterable[Sequence[str]]
) -> str:
    """Make the document, without scripts and without requests to the network.

    Titles and cells are escaped, so they stay text whatever characters they contain.

    Args:
        title: Title of the page, and its heading.
        svg: The picture.
        style: Style sheet in the picture, which the page's policy then allows.
        titles: Titles of the columns of the table.
        rows: Cells of each row.
    """
    policy = f"default-src 'none'; style-src '{digest(PAGE_STYLE)}' '{digest(style)}'"
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in titles)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width">
<title>{escaped(title)}</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
<h1>{escaped(title)}</h1>
<div class="wide">{svg}</div>
<div class="wide"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
</body>
</html>
"""
