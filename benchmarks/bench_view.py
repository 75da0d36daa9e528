"""Time of a frame of the page of a plan in headless Chromium, and of what a person waits for.

    python -m benchmarks.bench_view [--counts 1000,10000,100000] [--frames 40] [--record]

The plan is generated: buffers in lanes, of the sizes and lifetimes of an encoder's. `frame` draws
everything anew and waits for the pixels, `zoomed` the same of a tenth of the steps, `blend` two
such plans at half, `step` chooses a step and fills the lists and the layout, `pointer` finds the
buffer at a place. Chromium draws without a GPU. Milliseconds, median and largest.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks import record
from tests.view import plans
from tests.view.chromium import Chromium

from tightship.view.page_extras import Extras, Overlay
from tightship.view.picture import Picture
from tightship.view.timeline import timeline

COUNTS = (1_000, 10_000, 100_000)
FRAMES = 40
TIMED = {
    "frame": "drawing.drawBase(); pixels();",
    "zoomed": "drawing.drawBase(); pixels();",
    "step": "page.choose((7919 * round) % plan.steps); drawing.drawBase(); pixels();",
    "pointer": "plan.at((plan.steps * round) / rounds, (plan.arena * round) / rounds);",
    "blend": "drawing.drawBase(); pixels();",
}
PREPARED = {
    "zoomed": "drawing.zoom(0.1, 0.3, plan.steps * 0.4, drawing.top * 0.4);",
    "step": "drawing.showAll();",
    "blend": "drawing.showAll(); drawing.share = 0.5;",
}

Row = dict[str, object]


def row(browser: Chromium, count: int, frames: int) -> Row:
    """Milliseconds of each kind of work for a plan of so many buffers."""
    picture = plans.wide(count)
    began = time.perf_counter()
    page = timeline(picture, _overlaid(picture))
    made_s = time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "plan.html")
        path.write_text(page, encoding="utf-8")
        began = time.perf_counter()
        browser.open(path.as_uri())
        opened_s = time.perf_counter() - began
    figures: Row = {
        "buffers": count,
        "page_bytes": len(page.encode()),
        "made_s": round(made_s, 2),
        "opened_s": round(opened_s, 2),
    }
    for name in TIMED:
        taken = timed(browser, name, frames)
        figures[f"{name}_ms"] = round(statistics.median(taken), 2)
        figures[f"{name}_max_ms"] = round(max(taken), 2)
    return figures


def timed(browser: Chromium, name: str, rounds: int) -> list[float]:
    """Milliseconds of each round of a kind of work, after three that are not counted."""
    found: list[float] = browser.evaluate(
        f"""(() => {{
            const {{ page, plan, drawing }} = window.tightship;
            const pen = drawing.base.getContext("2d");
            const pixels = () => pen.getImageData(0, 0, 1, 1);  // waits for them
            const rounds = {rounds + 3};
            {PREPARED.get(name, "")}
            return Array.from({{ length: rounds }}, (_, round) => {{
                const began = performance.now();
                {TIMED[name]}
                return performance.now() - began;
            }}).slice(3);
        }})()"""
    )
    return found


def _overlaid(picture: Picture) -> Extras:
    """Lay a plan over itself; the page shows the new one alone until it is told otherwise."""
    places = tuple(map(float, range(picture.step_count + 1)))
    return Extras(overlay=Overlay(picture, tuple(range(len(picture.rectangles))), places))


def main() -> None:
    """Print a row for each count, and keep them if asked to."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--counts", default=",".join(map(str, COUNTS)))
    options.add_argument("--frames", type=int, default=FRAMES)
    options.add_argument("--record", action="store_true")
    given = options.parse_args()
    browser = Chromium()
    try:
        rows = [row(browser, int(count), given.frames) for count in given.counts.split(",")]
    finally:
        browser.close()
    for each in rows:
        print(json.dumps(each))
    if given.record:
        print(record.append("bench_view", {"rows": rows}))


if __name__ == "__main__":
    main()
