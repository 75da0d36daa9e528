"""Pages of a still picture and a table."""

from base64 import b64encode
from hashlib import sha256

from tightship.view.still_page import still_page


def page(**more):
    given = {"title": "some", "svg": "<svg/>", "style": ".a{}", "titles": ("x", "y"), "rows": ()}
    return still_page(**{**given, **more})


def test_the_policy_allows_the_style_of_the_picture_and_nothing_else():
    digest = b64encode(sha256(b".a{}").digest()).decode()
    policy = page().partition('content="')[2].partition('"')[0]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert policy.endswith(f" 'sha256-{digest}'")
    assert "<svg/>" in page()


def test_titles_and_cells_are_text():
    found = page(title="<b>\0", titles=("a<b",), rows=[("<i>",), ("1 & 2",)])
    assert "<h1>&lt;b&gt;?</h1>" in found
    assert '<th scope="col">a&lt;b</th>' in found
    assert "<tr><td>&lt;i&gt;</td></tr>\n<tr><td>1 &amp; 2</td></tr>" in found
