"""The page as a browser shows it: slider, blocks, hover, files, with nothing asked for."""

import json
from base64 import b64decode

import pytest

from tests.view.network import networks
from tests.view.shown import set_control, text
from tightship.view.network.levels import levels_of
from tightship.view.network.moments import moments
from tightship.view.network.network import network_of
from tightship.view.network.page import network_page

STATE = "window.tightship.drawing.drawn.map(({ part }) => part.getAttribute('class'))"


@pytest.fixture
def show(browser, tmp_path):
    def load(picture, step=None):
        network = network_of(picture)
        page = tmp_path / "graph.html"
        page.write_text(network_page(network, levels_of(network), step), encoding="utf-8")
        browser.open(page.as_uri())
        return browser

    return load


def middle(browser, label):
    """The middle of a box in the window, in pixels."""
    return browser.evaluate(
        f"""(() => {{
            const {{ drawn }} = window.tightship.drawing;
            const found = drawn.find(({{ box }}) => box.label === {label!r});
            const box = found.part.querySelector(".frame").getBoundingClientRect();
            return [box.left + box.width / 2, box.top + Math.min(10, box.height / 2)];
        }})()"""
    )


def fills(browser, label):
    return browser.evaluate(
        f"""(() => {{
            const {{ drawn }} = window.tightship.drawing;
            const found = drawn.find(({{ box }}) => box.label === {label!r});
            const parts = [...found.part.querySelectorAll(".fills rect")];
            return parts.map((each) => getComputedStyle(each).fill);
        }})()"""
    )


def test_the_same_bytes_have_the_same_colour_and_others_another(show):
    browser = show(networks.in_place())
    assert fills(browser, "Conv") == fills(browser, "Relu") != []
    assert fills(browser, "Gemm") == []
    assert text(browser, "#used") == "96 B"


def test_hover_names_tensor_bytes_and_offset(show):
    browser = show(networks.in_place())
    browser.mouse("mouseMoved", *middle(browser, "Relu"))
    found = text(browser, "#tip")
    for fact in ("step 1: Relu", "relu", "64 (64 B)", "in place of", "readers"):
        assert fact in found


def test_the_slider_shows_counters_and_free_boxes(show):
    browser = show(networks.in_place())
    assert browser.evaluate("document.getElementById('free').hidden") is True
    set_control(browser, "step", "1")
    assert text(browser, "#free-title") == "Free boxes: 1, 32 B"
    assert "32 B at 64" in text(browser, "#boxes")
    assert "after conv.scratch" in text(browser, "#boxes")
    assert text(browser, "#now-title") == "Step 1: Relu"
    assert "c: 0 readers left" in text(browser, "#now-facts")
    badges = "[...document.querySelectorAll('.badge:not([hidden]) text')].map((e) => e.textContent)"
    assert sorted(browser.evaluate(badges))[:2] == ["0", "1"]
    state = browser.evaluate(STATE)
    assert [each.split()[1] for each in state] == ["live", "now", "later", "whole"]


def test_the_page_agrees_with_the_json(show):
    picture = networks.layers(3, 12)
    network = network_of(picture)
    browser = show(picture)
    for moment in moments(network):
        boxes = browser.evaluate(f"window.tightship.network.freeBoxes({moment.step})")
        assert [(b["offset"], b["size"]) for b in boxes] == [
            (box.offset_bytes, box.size_bytes) for box in moment.free
        ]
        live = browser.evaluate(f"window.tightship.network.live({moment.step})")
        assert sorted(live) == sorted(moment.live)


def test_a_block_opens_and_closes_and_nothing_overlaps(show):
    browser = show(networks.layers(12, 50))
    count = "window.tightship.drawing.drawn.length"
    before = browser.evaluate(count)
    browser.click(*middle(browser, "/h.0/attn"))
    assert browser.evaluate(count) > before + 24
    overlapping = """(() => {
        const boxes = window.tightship.drawing.drawn.filter(({ isOpen }) => !isOpen);
        let found = 0;
        boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
            const x = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
            const y = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
            if (x > 0.5 && y > 0.5) found += 1;
        }));
        return found;
    })()"""
    assert browser.evaluate(overlapping) == 0
    assert text(browser, "#open-all") == "Close all"
    browser.click(*middle(browser, "/h.0/attn"))
    assert browser.evaluate(count) == before
    browser.evaluate("document.getElementById('open-all').click()")
    assert browser.evaluate(overlapping) == 0
    assert browser.evaluate(count) > 600


def test_values_that_enter_and_leave_an_open_block_show_their_state(show):
    browser = show(networks.layers(12, 50), step=30)
    browser.evaluate("window.tightship.page.click(window.tightship.drawing.boxOf(30).box.key)")
    ports = browser.evaluate(
        "window.tightship.drawing.drawn.filter(({ box }) => box.port).map(({ box, part }) => "
        "[box.label, part.getAttribute('class').split(' ')[1]])"
    )
    assert ports == [["/h.0/attn/op_24_output", "past"], ["x", "live"],
                     ["/h.0/mlp/op_49_output", "later"]]  # fmt: skip


def test_a_step_in_a_closed_block_marks_the_block(show):
    browser = show(networks.layers(12, 50), step=30)
    state = browser.evaluate(
        "window.tightship.drawing.drawn.filter(({ part }) => "
        "part.classList.contains('now')).map(({ box }) => box.label)"
    )
    assert state == ["/h.0/mlp"]


def test_search_finds_a_tensor(show):
    browser = show(networks.perceptron())
    set_control(browser, "search", "act1")
    assert text(browser, "#matches") == "2 found"


def test_keys_go_through_the_steps(show):
    browser = show(networks.perceptron())
    browser.key("]")
    browser.key("]")
    assert browser.evaluate("window.tightship.page.step") == 1
    browser.key("p")
    assert browser.evaluate("window.tightship.page.step") == networks.perceptron().peak_step()
    browser.key("Escape")
    assert browser.evaluate("window.tightship.page.step") == -1


def test_the_page_asks_for_nothing_and_complains_about_nothing(show):
    name = "</script><script>window.broken = 1</script>\"'&<img src=x onerror='window.broken=1'>"
    browser = show(networks.picture_of([("Relu", ["x"], [name])], title=name))
    browser.mouse("mouseMoved", *middle(browser, "Relu"))
    asked = [params["request"]["url"] for params in browser.methods("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith("data:")] == asked[:1]
    assert browser.evaluate("window.broken") is None
    assert name in text(browser, "#tip")
    for kind in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
        assert browser.methods(kind) == []


@pytest.mark.parametrize("width", [360, 860, 2400])
def test_the_page_is_as_wide_as_its_window(browser, show, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    try:
        show(networks.perceptron(), step=4)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        assert browser.evaluate("document.getElementById('stage').clientHeight") >= 300
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_drawing_is_exported(show, kind):
    browser = show(networks.perceptron(), step=4)
    content = b64decode(
        browser.evaluate(
            f"""window.tightship.page.save({kind!r}).then((blob) => new Promise((done) => {{
                const reader = new FileReader();
                reader.onload = () => done(reader.result.split(",")[1]);
                reader.readAsDataURL(blob);
            }}))"""
        )
    )
    if kind == "png":
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5000
    else:
        assert b"SoftmaxGrad" in content
        assert b"class=" not in content


def test_without_javascript_there_is_a_still_picture():
    network = network_of(networks.perceptron())
    page = network_page(network, levels_of(network))
    still = page.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "FullyConnected" in still
    data = page.partition('id="network">')[2].partition("</script>")[0]
    assert json.loads(data)["title"] == "perceptron"
