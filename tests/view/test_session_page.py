"""The page of a decoder's sessions."""

from tightship.view.session_page import session_page
from tightship.view.session_picture import PlannedContext, SessionPicture

MIB = 1 << 20


def page(title="decoder"):
    parts = {"weights": 40 * MIB, "arena": 6 * MIB}
    planned = tuple(PlannedContext(each, parts, each * 1024) for each in (1024, 2048))
    return session_page(SessionPicture(title, planned, (1, 4), frozenset({1024, 2048})))


def test_a_row_for_each_context_and_a_column_for_each_peak():
    cells = [f"<td>{text}</td>" for text in ("2,048", "40.0 MiB", "6.00 MiB", "2.00 MiB",
                                             "48.0 MiB", "54.0 MiB")]  # fmt: skip
    assert f"<tr>{''.join(cells)}</tr>" in page()
    assert page().count("<tr>") == 3
    assert '<th scope="col">peak x4</th>' in page()


def test_a_title_is_text():
    assert "<script" not in page("<script>&'\"")


def test_a_browser_shows_the_page_in_light_and_dark(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page(), encoding="utf-8")
    colours = set()
    for scheme in ("light", "dark"):
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", features=media)
        try:
            browser.open(path.as_uri())
            colours.add(
                browser.evaluate(
                    "getComputedStyle(document.querySelector('.tc-peak')).stroke"
                    " + getComputedStyle(document.querySelector('.tc-card')).fill"
                )
            )
        finally:
            browser.call("Emulation.setEmulatedMedia", features=[])
        refused = [each["entry"]["text"] for each in browser.methods("Log.entryAdded")]
        assert not [text for text in refused if "Security Policy" in text]
    assert len(colours) == 2
    inside = """[...document.querySelectorAll('svg text')].every((text) => {
        const box = text.getBBox()
        return box.x >= 0 && box.x + box.width <= 960
    })"""
    assert browser.evaluate(inside)
