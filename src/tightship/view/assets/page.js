/* Pointer, keys and search: what changes the part of the plan that is shown. */

const DRAG_PIXELS = 4;

class Page {
  constructor(data) {
    this.data = data;
    this.plan = new Plan(data);
    const old = data.old ? new Plan(data.old, data.places) : null;
    if (old) compare(this.plan, old, data.pairs);
    this.drawing = new Drawing(this.plan, old, $("base"), $("marks"));
    this.panel = new Panel(this);
    this.pointers = new Map();
    this.isQueued = false;
    this.spot = null;
    this.listen();
    this.panel.listen();
    this.panel.showAll();
    this.restyle();
  }

  /* Show another plan in the place of this one, as for another length. */
  show(plan) {
    const drawing = new Drawing(plan, null, $("base"), $("marks"));
    const name = this.plan.grouping.name;
    plan.group(Math.max(0, plan.groupings.findIndex((each) => each.name === name)));
    this.plan = plan;
    this.drawing = drawing;
    drawing.readColours();
    drawing.resize();
    this.panel.showAll();
    this.pin(-1);
    this.search();
    this.restyle();
  }

  listen() {
    const marks = $("marks");
    marks.addEventListener("pointerdown", (event) => this.press(event));
    marks.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"])
      marks.addEventListener(name, (event) => this.release(event));
    marks.addEventListener("pointerleave", () => this.leave());
    marks.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    marks.addEventListener("dblclick", () => {
      if (this.drawing.hover >= 0) this.goTo(this.drawing.hover);
    });
    marks.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("keydown", (event) => this.pageKey(event));
    $("search").addEventListener("input", () => this.search());
    $("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.nextMatch();
    });
    $("zoom-in").addEventListener("click", () => this.zoomMiddle(0.6));
    $("zoom-out").addEventListener("click", () => this.zoomMiddle(1 / 0.6));
    $("to-all").addEventListener("click", () => this.showAll());
    $("to-peak").addEventListener("click", () => this.showPeak());
    new ResizeObserver(() => this.restyle()).observe($("stage"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.restyle());
  }

  restyle() {
    this.drawing.readColours();
    this.drawing.resize();
    this.drawing.drawBase();
    this.panel.layout.draw();
  }

  redraw() {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.drawing.drawBase();
      if (this.spot && !this.pointers.size) this.pointAt(this.spot);
    });
  }

  place(event) {
    const box = $("marks").getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  press(event) {
    $("marks").setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { ...this.place(event), travelled: 0 });
  }

  move(event) {
    const spot = this.place(event);
    const last = this.pointers.get(event.pointerId);
    if (!last) {
      this.pointAt(spot);
      return;
    }
    const [dx, dy] = [spot.x - last.x, spot.y - last.y];
    const travelled = last.travelled + Math.hypot(dx, dy);
    if (this.pointers.size === 2) this.pinch(event.pointerId, last, spot);
    else if (travelled >= DRAG_PIXELS) this.pan(dx, dy);
    if (travelled < DRAG_PIXELS && this.pointers.size === 1) last.travelled = travelled;
    else this.pointers.set(event.pointerId, { ...spot, travelled });
  }

  release(event) {
    const last = this.pointers.get(event.pointerId);
    this.pointers.delete(event.pointerId);
    $("marks").classList.remove("pan");
    if (last && last.travelled < DRAG_PIXELS && event.type === "pointerup")
      this.click(this.place(event), event.pointerType);
  }

  pan(dx, dy) {
    const d = this.drawing;
    $("marks").classList.add("pan");
    this.hover(-1);
    d.place(
      d.x0 - (dx * (d.x1 - d.x0)) / (d.right - d.left),
      d.x1 - d.x0,
      d.y0 + (dy * (d.y1 - d.y0)) / (d.plotBottom - d.plotTop),
      d.y1 - d.y0,
    );
    this.redraw();
  }

  pinch(id, last, spot) {
    const other = [...this.pointers].find(([key]) => key !== id)[1];
    const before = Math.hypot(last.x - other.x, last.y - other.y);
    const after = Math.hypot(spot.x - other.x, spot.y - other.y);
    this.zoomAt(before / Math.max(1, after), 3, {
      x: (spot.x + other.x) / 2,
      y: (spot.y + other.y) / 2,
    });
    other.travelled = DRAG_PIXELS;
  }

  wheel(event) {
    event.preventDefault();
    const delta = event.deltaY || event.deltaX;
    const factor = Math.exp(clamp(delta, -120, 120) * (event.deltaMode ? 0.04 : 0.0022));
    this.zoomAt(factor, event.shiftKey ? 1 : event.altKey ? 2 : 3, this.place(event));
  }

  /* Zoom about a spot; `axes` is 1 for steps, 2 for bytes, 3 for both. */
  zoomAt(factor, axes, spot) {
    const d = this.drawing;
    d.zoom(axes & 1 ? factor : 1, axes & 2 ? factor : 1, d.stepAt(spot.x), d.bytesAt(spot.y));
    this.redraw();
  }

  zoomMiddle(factor) {
    const d = this.drawing;
    d.zoom(factor, factor, (d.x0 + d.x1) / 2, (d.y0 + d.y1) / 2);
    this.redraw();
  }

  showAll() {
    this.drawing.showAll();
    this.redraw();
  }

  showPeak() {
    const d = this.drawing;
    const span = Math.min(Math.max(1, this.plan.steps), 40);
    d.place(this.plan.peak + 0.5 - span / 2, span, 0, d.top);
    this.choose(this.plan.peak);
  }

  leave() {
    this.spot = null;
    this.hover(-1);
  }

  pointAt(spot) {
    this.spot = spot;
    const d = this.drawing;
    const isInside =
      spot.x >= d.left && spot.x <= d.right && spot.y >= d.plotTop && spot.y <= d.plotBottom;
    this.hover(isInside ? d.shown.at(d.stepAt(spot.x), d.bytesAt(spot.y)) : -1, spot);
  }

  hover(i, spot) {
    if (i !== this.drawing.hover) {
      this.drawing.hover = i;
      this.drawing.drawMarks();
      $("tip").replaceChildren(...(i < 0 ? [] : this.panel.card(i)));
      $("tip").hidden = i < 0;
    }
    if (i >= 0) this.moveTip(spot);
  }

  moveTip(spot) {
    const [tip, stage] = [$("tip"), $("stage")];
    const x =
      spot.x + 16 + tip.offsetWidth > stage.clientWidth
        ? spot.x - 16 - tip.offsetWidth
        : spot.x + 16;
    const y =
      spot.y + 16 + tip.offsetHeight > stage.clientHeight
        ? spot.y - 16 - tip.offsetHeight
        : spot.y + 16;
    tip.style.left = `${clamp(x, 0, stage.clientWidth - tip.offsetWidth)}px`;
    tip.style.top = `${clamp(y, 0, stage.clientHeight - tip.offsetHeight)}px`;
  }

  click(spot, pointerType) {
    const d = this.drawing;
    if (spot.y < d.plotTop && spot.x >= d.left && spot.x <= d.right) {
      this.choose(clamp(Math.floor(d.stepAt(spot.x)), 0, Math.max(0, this.plan.steps - 1)));
      return;
    }
    this.pin(d.shown.at(d.stepAt(spot.x), d.bytesAt(spot.y)));
    if (pointerType !== "mouse") this.leave();
  }

  pin(i) {
    this.drawing.pinned = i;
    this.panel.showPinned(i);
    this.drawing.drawMarks();
  }

  goTo(i) {
    this.pin(i);
    this.drawing.reveal(i, this.drawing.shown);
    this.redraw();
  }

  /* Choose a step of the page's axis. */
  choose(step) {
    this.drawing.focus = step;
    this.panel.showStep();
    this.redraw();
  }

  /* Show so much of the new plan, and of the old one the rest. */
  blend(share) {
    const before = this.drawing.shown;
    this.drawing.share = share;
    if (this.drawing.shown !== before) {
      this.hover(-1);
      this.pin(-1);
      this.search();
      this.panel.showStep();
    }
    this.redraw();
  }

  search() {
    const text = $("search").value;
    const plan = this.drawing.shown;
    const found = text ? plan.find(text) : [];
    this.found = found;
    this.foundAt = -1;
    this.drawing.matches = new Set(found.slice(0, 500));
    $("matches").textContent = text ? `${found.length.toLocaleString("en")} found` : "";
    $("found").replaceChildren(
      ...found.slice(0, 12).map((i) => {
        const option = document.createElement("option");
        option.value = plan.names[i];
        return option;
      }),
    );
    this.drawing.drawMarks();
    if (found.length === 1) this.nextMatch();
  }

  nextMatch() {
    if (!this.found || !this.found.length) return;
    this.foundAt = (this.foundAt + 1) % this.found.length;
    this.goTo(this.found[this.foundAt]);
  }

  key(event) {
    const turns = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const turn = turns[event.key];
    const plan = this.drawing.shown;
    if (turn) {
      const from = this.drawing.pinned;
      const next =
        from < 0
          ? (plan.liveAt(plan.stepOf(this.drawing.focus + 0.5))[0] ?? -1)
          : plan.neighbour(from, ...turn);
      if (next >= 0) this.goTo(next);
    } else if (event.key === "Enter" && this.drawing.hover >= 0) {
      this.pin(this.drawing.hover);
    } else {
      return;
    }
    event.preventDefault();
  }

  pageKey(event) {
    if (event.key === "Escape") {
      this.pin(-1);
      this.choose(this.plan.peak);
      return;
    }
    const isTyped = event.target.tagName === "SELECT" || event.target.type === "search";
    if (isTyped || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      "+": () => this.zoomMiddle(0.6),
      "=": () => this.zoomMiddle(0.6),
      "-": () => this.zoomMiddle(1 / 0.6),
      0: () => this.showAll(),
      p: () => this.showPeak(),
      d: () => this.panel.toggle(),
      "[": () => this.panel.stepBy(-1),
      "]": () => this.panel.stepBy(1),
      "/": () => $("search").focus(),
    };
    const action = actions[event.key.toLowerCase()];
    if (action) {
      action();
      event.preventDefault();
    }
  }
}

const page = new Page(JSON.parse($("plan").textContent));
window.tightship = {
  page,
  get plan() {
    return page.plan;
  },
  get drawing() {
    return page.drawing;
  },
};
