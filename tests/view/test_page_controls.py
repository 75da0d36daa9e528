"""Controls of the page: steps, groups, two plans, lengths, a measurement, exports."""

import base64
import io
import json
import struct
from xml.etree import ElementTree

import pytest
from benchmarks import bench_view
from PIL import Image

from tests.view import plans
from tests.view.shown import opened, pixel, set_control, slot, text, two_plans
from tightship.view.page_extras import Extras, Measured

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def show(browser, tmp_path):
    return lambda picture, extras=None: opened(browser, tmp_path, picture, extras)


def complaints(browser):
    return [
        *browser.methods("Log.entryAdded"),
        *browser.methods("Runtime.exceptionThrown"),
        *browser.methods("Runtime.consoleAPICalled"),
    ]


def test_scrubbing_shows_the_layout_and_what_is_live_at_each_step(show):
    picture = plans.cnn()
    browser = show(picture)
    for step in (0, 20, 59):
        set_control(browser, "step", step)
        live = picture.live_at(step)
        assert text(browser, "#step-value").startswith(str(step))
        names = browser.evaluate(
            "[...document.querySelectorAll('#live .name')].map((e) => e.innerText)"
        )
        assert names == [rectangle.name for rectangle in live][:12]
        drawn = browser.evaluate(
            "window.tightship.page.panel.layout.boxes.map(({ plan, i }) => plan.names[i])"
        )
        assert sorted(drawn) == sorted(rectangle.name for rectangle in live)
    assert complaints(browser) == []


def test_a_click_in_the_layout_pins_the_buffer(show):
    picture = plans.cnn()
    browser = show(picture)
    x, y, name = browser.evaluate(
        """(() => {
            const box = window.tightship.page.panel.layout.boxes[1];
            const canvas = document.getElementById("layout");
            canvas.scrollIntoView();
            const at = canvas.getBoundingClientRect();
            return [at.left + box.x + box.width / 2, at.top + box.y + 5, box.plan.names[box.i]];
        })()"""
    )
    browser.click(x, y)
    assert text(browser, "#pinned .tensor") == name


def test_buffers_are_grouped_by_operator_and_by_module(show):
    picture = plans.cnn()
    browser = show(picture)
    step = picture.peak_step()
    for index, name in enumerate(("operator", "module")):
        set_control(browser, "grouping", index)
        assert text(browser, "#groups h2") == f"By {name}"
        shown = browser.evaluate(
            "[...document.querySelectorAll('#groups button')].map((e) => e.innerText.split('\\n'))"
        )
        assert shown
        assert {row[0] for row in shown} == {
            picture.operator_of(r) if name == "operator" else "/stage0"
            for r in picture.live_at(step)
        }
    total = sum(r.size_bytes for r in picture.live_at(step))
    assert browser.evaluate("window.tightship.page.panel.groups.sums()[0].bytes[1]") == total


def test_a_chosen_group_dims_the_others(show):
    picture = plans.cnn()
    browser = show(picture)
    name = "stage1/block4/add_19"
    before = pixel(browser, name)
    browser.evaluate("[...document.querySelectorAll('#groups button')][0].click()")
    browser.evaluate("new Promise((done) => requestAnimationFrame(done))")
    assert text(browser, "#groups [aria-pressed=true] .name") == "Conv"
    assert pixel(browser, name) != before
    browser.evaluate("[...document.querySelectorAll('#groups button')][0].click()")
    browser.evaluate("new Promise((done) => requestAnimationFrame(done))")
    assert pixel(browser, name) == before


def test_two_plans_are_overlaid_and_their_differences_coloured(show):
    new, overlay = two_plans()
    browser = show(new, Extras(overlay=overlay))
    browser.evaluate("window.tightship.page.choose(2)")
    browser.evaluate("new Promise((done) => requestAnimationFrame(done))")
    kinds = browser.evaluate(
        "[window.tightship.plan, window.tightship.drawing.old].map((plan) => Object.fromEntries("
        "plan.names.map((name, i) => [name, plan.grouping.groups.words[plan.groupAt[i]]])))"
    )
    assert kinds[0] == {
        "same": "same",
        "moved": "moved",
        "longer": "other lifetime",
        "larger": "other size",
        "new": "new",
    }
    assert kinds[1] == {
        **{name: kinds[0][name] for name in kinds[0] if name != "new"},
        "gone": "gone",
    }
    assert pixel(browser, "moved") == slot(browser, 0)
    assert pixel(browser, "new") == slot(browser, 5)


def test_the_slider_goes_from_one_plan_to_the_other(show):
    new, overlay = two_plans()
    browser = show(new, Extras(overlay=overlay))
    browser.evaluate("window.tightship.page.choose(5)")
    only_new = pixel(browser, "new")
    set_control(browser, "share", 0)
    assert pixel(browser, "gone", "old") == slot(browser, 3)
    assert browser.evaluate("window.tightship.drawing.shown === window.tightship.drawing.old")
    assert text(browser, "#live h2").startswith("Live of the old plan, step 4")
    set_control(browser, "share", 50)
    assert pixel(browser, "new") != only_new
    browser.key("d")
    assert browser.evaluate("document.getElementById('share').value") == "0"
    browser.key("d")
    browser.evaluate("new Promise((done) => requestAnimationFrame(done))")
    assert browser.evaluate("window.tightship.drawing.share") == 1


def test_the_page_says_what_moved_the_peak_and_marks_both(show):
    new, overlay = two_plans()
    browser = show(new, Extras(overlay=overlay))
    aside = text(browser, "aside")
    for said in ("What moved the peak", "before.json", "Because.", "shape: <b>larger</b>"):
        assert said in aside
    old, plan = browser.evaluate(
        "[window.tightship.drawing.old, window.tightship.plan].map((each) => each.peak)"
    )
    assert (old, plan) == (overlay.old.peak_step(), new.peak_step())


def test_the_pointer_finds_buffers_of_the_old_plan_at_their_places(show):
    new, overlay = two_plans()
    browser = show(new, Extras(overlay=overlay))
    set_control(browser, "share", 0)
    x, y = browser.evaluate(
        """(() => {
            const { drawing } = window.tightship;
            const i = drawing.old.names.indexOf("longer");
            const box = document.getElementById("marks").getBoundingClientRect();
            const middle = (drawing.old.lefts[i] + drawing.old.rights[i]) / 2;
            const bytes = drawing.old.offsets[i] + drawing.old.sizes[i] / 2;
            return [box.left + drawing.x(middle), box.top + drawing.y(bytes)];
        })()"""
    )
    browser.mouse("mouseMoved", x, y)
    tip = text(browser, "#tip")
    for fact in ("longer", "step 3", "difference", "other lifetime", "new plan", "steps 4 to 5"):
        assert fact in tip


def test_lengths_are_chosen_by_a_control(show):
    pictures = [(1, plans.cnn(24)), (4, plans.cnn(48)), (16, plans.cnn(60))]
    extras = Extras(length_name="batch", lengths=pictures)
    browser = show(pictures[0][1], extras)
    assert text(browser, "#length-name") == "batch"
    assert text(browser, "#length-value") == "1"
    for index in (2, 1, 0):
        set_control(browser, "length", index)
        length, picture = pictures[index]
        assert text(browser, "#length-value") == str(length)
        assert browser.evaluate("window.tightship.plan.count") == len(picture.rectangles)
        assert browser.evaluate("document.getElementById('step').max") == str(
            picture.step_count - 1
        )
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert complaints(browser) == []


def test_a_measurement_is_drawn_and_named(show):
    picture = plans.cnn()
    measured = Measured(tuple(1000 * (i + 1) for i in range(60)), 100 << 20, 50 << 20)
    browser = show(picture, Extras(measured=measured))
    aside = text(browser, "#measured")
    assert "100.0 MiB" in aside
    assert "0.72 of plan" in aside
    assert "1.83 ms" in aside
    browser.evaluate("window.tightship.page.goTo(9)")
    start = picture.rectangles[9].start_step
    assert f"{start + 1}.0 µs of its step" in text(browser, "#pinned")


EXPORT = """(() => {
    const made = URL.createObjectURL;
    return new Promise((done) => {
        URL.createObjectURL = (blob) => {
            URL.createObjectURL = made;
            const reader = new FileReader();
            reader.onload = () => done([blob.type, reader.result.split(",")[1]]);
            reader.readAsDataURL(blob);
            return made(blob);
        };
        document.getElementById("%s").click();
    });
})()"""


def exported(browser, name):
    kind, content = browser.evaluate(EXPORT % name)
    return kind, base64.b64decode(content)


def test_the_picture_is_exported_as_png(show):
    browser = show(plans.cnn())
    kind, content = exported(browser, "png")
    assert kind == "image/png"
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    size = browser.evaluate(
        "[window.tightship.drawing.base.width, window.tightship.drawing.base.height]"
    )
    assert list(struct.unpack(">II", content[16:24])) == size
    assert complaints(browser) == []


@pytest.mark.parametrize("is_overlaid", [False, True])
def test_the_picture_is_exported_as_svg(show, is_overlaid):
    picture, overlay = two_plans() if is_overlaid else (plans.cnn(), None)
    browser = show(picture, Extras(overlay=overlay))
    if is_overlaid:
        set_control(browser, "share", 50)
    kind, content = exported(browser, "svg")
    assert kind == "image/svg+xml"
    root = ElementTree.fromstring(content)
    count = len(picture.rectangles) + (len(overlay.old.rectangles) if overlay else 0)
    assert len(list(root.iter(f"{SVG}rect"))) >= count
    assert any("peak" in (each.text or "") for each in root.iter(f"{SVG}text"))


def test_exports_have_the_background_of_the_page(show):
    browser = show(plans.cnn())
    page = "#fbfbfa"
    assert browser.evaluate("window.tightship.drawing.colour.page") == page
    image = Image.open(io.BytesIO(exported(browser, "png")[1])).convert("RGB")
    assert image.getpixel((0, 0)) == tuple(bytes.fromhex(page[1:]))
    root = ElementTree.fromstring(exported(browser, "svg")[1])
    assert next(root.iter(f"{SVG}rect")).get("fill") == page
    assert {each.get("fill") for each in root.iter()} & {"", "undefined"} == set()


def test_a_trace_for_perfetto_has_steps_live_bytes_and_lifetimes(show):
    picture = plans.cnn()
    measured = Measured(tuple([2000] * 60))
    browser = show(picture, Extras(measured=measured))
    kind, content = exported(browser, "perfetto")
    events = json.loads(content)["traceEvents"]
    assert kind == "application/json"
    steps = [each for each in events if each["ph"] == "X"]
    assert [each["name"] for each in steps] == [step.name for step in picture.steps]
    assert {each["dur"] for each in steps} == {2.0}
    begins = {each["id"]: each for each in events if each["ph"] == "b"}
    ends = {each["id"]: each for each in events if each["ph"] == "e"}
    assert begins.keys() == ends.keys() == set(range(len(picture.rectangles)))
    for i, r in enumerate(picture.rectangles):
        assert begins[i]["args"]["size_bytes"] == r.size_bytes
        assert (begins[i]["ts"], ends[i]["ts"]) == (2.0 * r.start_step, 2.0 * r.stop_step)
    peak = max(each["args"]["bytes"] for each in events if each["ph"] == "C")
    assert peak == max(step.live_bytes for step in picture.steps)


def test_a_page_of_a_hundred_thousand_buffers_answers(show):
    picture = plans.wide(100_000)
    browser = show(picture)
    assert browser.evaluate("window.tightship.plan.count") == 100_000
    set_control(browser, "step", picture.step_count // 2)
    browser.evaluate("window.tightship.page.goTo(77777)")
    assert text(browser, "#pinned .tensor") == picture.rectangles[77777].name
    assert complaints(browser) == []


@pytest.mark.parametrize("width", [400, 700, 1600])
def test_controls_stay_within_the_window(browser, show, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **size)
    try:
        new, overlay = two_plans()
        show(new, Extras(overlay=overlay, measured=Measured(tuple([1000] * 6))))
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_the_benchmark_of_the_page_times_every_kind_of_work(browser):
    figures = bench_view.row(browser, 200, 2)
    assert figures["buffers"] == 200
    assert all(figures[f"{name}_max_ms"] >= 0 for name in bench_view.TIMED)
