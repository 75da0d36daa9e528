"""Pages opened in a browser, and two plans that differ in every way that a page tells."""

from dataclasses import replace

from tests.view import plans
from tightship.view.page_extras import Extras, Overlay, placed_steps
from tightship.view.picture import Rectangle
from tightship.view.timeline import timeline


def opened(browser, folder, picture, extras=None):
    """Load the page of a plan, and return the browser."""
    page = folder / "plan.html"
    page.write_text(timeline(picture, extras or Extras()), encoding="utf-8")
    browser.open(page.as_uri())
    return browser


def set_control(browser, name, value):
    """Move a slider or choose an option, as a person does, and wait for the next frame."""
    browser.evaluate(
        f"""(() => {{
            const control = document.getElementById({name!r});
            control.value = {value!r};
            for (const kind of ["input", "change"]) control.dispatchEvent(new Event(kind));
            return new Promise((done) => requestAnimationFrame(done));
        }})()"""
    )


def text(browser, query):
    """The text of the first element that a query of CSS finds."""
    return browser.evaluate(f"document.querySelector({query!r}).innerText")


def pixel(browser, name, plan="plan"):
    """The colour in the middle of a buffer, or where it would be."""
    return browser.evaluate(
        f"""(() => {{
            const {{ drawing }} = window.tightship;
            const plan = drawing[{plan!r}];
            const i = plan.names.indexOf({name!r});
            const x = drawing.x((plan.lefts[i] + plan.rights[i]) / 2) - 8;
            const y = drawing.y(plan.offsets[i] + plan.sizes[i] / 2) + 12;
            const at = [x, y].map((each) => Math.round(each * drawing.ratio));
            return [...drawing.base.getContext("2d").getImageData(...at, 1, 1).data].slice(0, 3);
        }})()"""
    )


def slot(browser, number):
    """The faded colour of a slot, as a pixel."""
    return browser.evaluate(
        f"""(() => {{
            const hex = window.tightship.drawing.fadedColours[{number}];
            return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
        }})()"""
    )


def two_plans():
    """A plan of five steps and one of six: a step more, and a buffer of each difference."""
    kib = 1024
    steps = plans.cnn(6).steps
    old = plans.picture(
        [
            Rectangle("same", 64 * kib, 0, 0, 5),
            Rectangle("moved", 64 * kib, 64 * kib, 0, 2),
            Rectangle("longer", 64 * kib, 128 * kib, 3, 4),
            Rectangle("larger", 64 * kib, 192 * kib, 0, 5),
            Rectangle("gone", 128 * kib, 256 * kib, 0, 2),
        ],
        steps[:5],
    )
    new = plans.picture(
        [
            Rectangle("same", 64 * kib, 0, 0, 6),
            Rectangle("moved", 64 * kib, 384 * kib, 0, 2),
            Rectangle("longer", 64 * kib, 64 * kib, 4, 6),
            Rectangle("larger", 192 * kib, 192 * kib, 0, 6),
            Rectangle("new", 128 * kib, 448 * kib, 4, 6),
        ],
        steps,
    )
    old = replace(old, title="old")
    places = placed_steps(6, 5, [(0, 0), (1, 1), (3, 2), (4, 3), (5, 4)])
    rows = (("larger", "shape: <b>larger</b>", 64 * kib, 192 * kib),)
    return new, Overlay(old, (0, 1, 2, 3, -1), places, rows, "Because.", "before.json")
