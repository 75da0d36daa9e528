/* Everything around the buffers: colours, axes, the load above them, and the lines of peaks. */

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const LABEL_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const COLOURS = [
  "page",
  "card",
  "ink",
  "soft",
  "line",
  "grid",
  "accent",
  "bound",
  "load",
  "load-fill",
  "on-fill",
  "veil",
  "faded",
  "time",
];
const SLOTS = 8;
const DIMMED = 0.12; // share of its colour that a buffer outside the chosen group keeps

class Axes extends PlanWindow {
  constructor(plan, old, base, marks) {
    super(plan, old);
    this.base = base;
    this.marks = marks;
    this.focus = plan.peak;
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colour = Object.fromEntries(
      COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    this.slotColours = Array.from({ length: SLOTS }, (_, slot) =>
      style.getPropertyValue(`--slot${slot}`).trim(),
    );
    const mix = (share) => this.slotColours.map((each) => mixed(each, this.colour.card, share));
    this.fadedColours = mix(Number(this.colour.faded));
    this.dimmedColours = mix(DIMMED);
  }

  resize() {
    const { width, height } = this.marks.getBoundingClientRect();
    this.fit(width, height, window.devicePixelRatio || 1);
    for (const canvas of [this.base, this.marks]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
  }

  pen(canvas) {
    const pen = canvas.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.font = FONT;
    return pen;
  }

  clipped(pen, top, bottom, draw) {
    pen.save();
    pen.beginPath();
    pen.rect(this.left, top, this.right - this.left, bottom - top);
    pen.clip();
    draw();
    pen.restore();
  }

  drawAxes(pen) {
    pen.strokeStyle = this.colour.grid;
    pen.fillStyle = this.colour.soft;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const [bytes, label] of byteTicks(
      this.y0,
      this.y1,
      (this.plotBottom - this.plotTop) / 56,
    )) {
      const y = this.snap(this.y(bytes));
      line(pen, this.left, y, this.right, y);
      pen.fillText(label, this.left - 8, y);
    }
    pen.fillText("0", this.left - 8, this.loadBottom - 3);
    pen.fillText(
      formatBytes(this.plan.loadMax),
      this.left - 8,
      Math.max(this.loadTop + 6, this.loadY(this.plan.loadMax)),
    );
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const step of stepTicks(this.x0, this.x1, (this.right - this.left) / 80)) {
      const x = this.snap(this.x(step));
      line(pen, x, this.plotTop, x, this.plotBottom + 4);
      const label = step.toLocaleString("en");
      pen.fillText(
        label,
        Math.min(x, this.right + MARGIN.right - pen.measureText(label).width / 2),
        this.plotBottom + 7,
      );
    }
    pen.textAlign = "right";
    pen.fillText("step", this.right, this.plotBottom + 22);
    pen.textAlign = "left";
    pen.textBaseline = "bottom";
    pen.fillText("live bytes", this.left, this.loadTop - 4);
    pen.fillText("address in the arena", this.left, this.plotTop - 5);
    pen.strokeStyle = this.colour.line;
    line(pen, this.left, this.plotBottom + 0.5, this.right, this.plotBottom + 0.5);
    line(pen, this.left, this.loadBottom + 0.5, this.right, this.loadBottom + 0.5);
  }

  drawLoad(pen) {
    this.clipped(pen, this.loadTop - 1, this.loadBottom, () => {
      this.curve(pen, this.plan);
      pen.lineTo(Math.min(this.right, this.x(this.plan.steps)), this.loadBottom);
      pen.lineTo(this.left, this.loadBottom);
      pen.fillStyle = this.colour["load-fill"];
      pen.fill();
      this.curve(pen, this.plan);
      pen.strokeStyle = this.colour.load;
      pen.stroke();
      if (this.old) {
        this.curve(pen, this.old);
        pen.strokeStyle = this.colour.soft;
        pen.setLineDash([4, 3]);
        pen.stroke();
        pen.setLineDash([]);
      }
      if (this.plan.times?.length) this.drawTimes(pen);
    });
    if (!this.plan.times?.length) return;
    const text = `measured: up to ${formatTime(this.plan.timeMax)} a step`;
    this.tag(pen, text, this.right - 4, this.loadTop + 9, "right", this.colour.time);
  }

  /* The path of a plan's live bytes, from step to step. */
  curve(pen, plan) {
    const { loadSteps, loadBytes } = plan;
    pen.beginPath();
    let y = this.loadY(plan.loadAt(plan.stepOf(this.x0)));
    pen.moveTo(this.left, this.loadBottom);
    pen.lineTo(this.left, y);
    const [first, stop] = [this.x0, this.x1];
    let column = -Infinity;
    let top = y;
    for (let k = 0; k < loadSteps.length; k++) {
      const place = plan.placeOf(loadSteps[k]);
      if (place <= first) continue;
      if (place >= stop) break;
      const x = this.x(place);
      const next = this.loadY(loadBytes[k]);
      if (x - column < 0.5) {
        // Many steps of one pixel: only the highest is drawn.
        if (next < top) {
          pen.lineTo(x, next);
          top = next;
        }
        y = next;
        continue;
      }
      pen.lineTo(x, y);
      pen.lineTo(x, next);
      [column, top, y] = [x, next, next];
    }
    pen.lineTo(Math.min(this.right, this.x(plan.placeOf(plan.steps))), y);
  }

  /* A line of the measured time of each step, on a scale of its own. */
  drawTimes(pen) {
    const { times, timeMax } = this.plan;
    const height = (this.loadBottom - this.loadTop) / (timeMax || 1);
    pen.strokeStyle = this.colour.time;
    pen.beginPath();
    const first = Math.max(0, Math.floor(this.x0));
    const last = Math.min(times.length, Math.ceil(this.x1));
    for (let step = first; step < last; step++) {
      const y = this.loadBottom - times[step] * height;
      if (step === first) pen.moveTo(this.x(step), y);
      else pen.lineTo(this.x(step), y);
      pen.lineTo(this.x(step + 1), y);
    }
    pen.stroke();
  }

  /* The arena's end, its lower bound and the peak, over both plots. */
  drawLevels(pen) {
    const { arena, bound, peak } = this.plan;
    const isTight = Math.abs(this.y(bound) - this.y(arena)) < 3;
    const arenaText =
      isTight && arena === bound
        ? `arena = lower bound ${formatBytes(arena)}`
        : `arena ${formatBytes(arena)}`;
    pen.setLineDash([5, 4]);
    if (bound > 0) {
      this.level(pen, this.loadY(bound), this.loadTop, this.loadBottom, this.colour.bound);
      this.level(pen, this.y(bound), this.plotTop, this.plotBottom, this.colour.bound);
    }
    pen.setLineDash([]);
    if (arena !== bound)
      this.level(pen, this.y(arena), this.plotTop, this.plotBottom, this.colour.soft);
    const arenaY = this.y(arena);
    if (arenaY >= this.plotTop)
      this.tag(
        pen,
        arenaText,
        this.right - 4,
        arenaY - 9,
        "right",
        arena === bound ? this.colour.bound : this.colour.ink,
      );
    const boundY = this.y(bound);
    if (bound > 0 && arena !== bound && boundY >= this.plotTop && boundY < this.plotBottom - 14) {
      this.tag(
        pen,
        `lower bound ${formatBytes(bound)}`,
        this.right - 4,
        boundY + 10,
        "right",
        this.colour.bound,
      );
    }
    if (this.old) this.drawOldPeak(pen);
    const x = this.x(peak + 0.5);
    if (x < this.left || x > this.right) return;
    const text = `peak ${formatBytes(this.plan.loadMax)} at step ${peak.toLocaleString("en")}`;
    this.drawPeak(pen, x, text, this.colour.accent, this.loadTop - 4);
  }

  drawPeak(pen, x, text, colour, y) {
    pen.strokeStyle = colour;
    pen.setLineDash([2, 3]);
    this.upright(pen, x);
    pen.setLineDash([]);
    pen.fillStyle = colour;
    this.caption(pen, text, x, y, 70);
  }

  /* The old plan's peak, and an arrow from it to the new one's. */
  drawOldPeak(pen) {
    const { old, plan } = this;
    const [from, to] = [this.x(old.placeOf(old.peak + 0.5)), this.x(plan.peak + 0.5)];
    if (from >= this.left && from <= this.right) {
      const step = old.peak.toLocaleString("en");
      const text = `old peak ${formatBytes(old.loadMax)} at its step ${step}`;
      this.drawPeak(pen, from, text, this.colour.soft, this.loadBottom + 14);
    }
    if (Math.abs(to - from) < 12) return;
    const [start, end] = [from, to].map((x) => clamp(x, this.left, this.right));
    const [y, turn] = [this.loadTop + 2, Math.sign(to - from)];
    pen.strokeStyle = this.colour.accent;
    line(pen, start, y, end, y);
    line(pen, end, y, end - 5 * turn, y - 3);
    line(pen, end, y, end - 5 * turn, y + 3);
  }

  /* A vertical line through both plots, not through the words between them. */
  upright(pen, x) {
    line(pen, x, this.loadTop, x, this.loadBottom);
    line(pen, x, this.plotTop, x, this.plotBottom);
  }

  level(pen, y, top, bottom, colour) {
    if (y < top || y > bottom) return;
    pen.strokeStyle = colour;
    line(pen, this.left, this.snap(y), this.right, this.snap(y));
  }

  /* Words beside a vertical line, kept inside the plot and right of `reserved` pixels. */
  caption(pen, text, x, y, reserved) {
    const half = pen.measureText(text).width / 2;
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    pen.fillText(text, clamp(x, this.left + reserved + half, this.right - half), y);
  }

  tag(pen, text, x, y, align, colour) {
    pen.font = LABEL_FONT;
    pen.textAlign = align;
    pen.textBaseline = "middle";
    const width = pen.measureText(text).width;
    pen.fillStyle = this.colour.veil;
    pen.fillRect(align === "right" ? x - width - 4 : x - 4, y - 7, width + 8, 14);
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
    pen.font = FONT;
  }
}
