/* The picture on its canvases: the buffers, the load above them, marks on top. */

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const LABEL_FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const COLOURS = [
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
];

class Drawing extends PlanWindow {
  constructor(plan, base, marks) {
    super(plan);
    this.base = base;
    this.marks = marks;
    this.focus = plan.peak;
    this.hover = -1;
    this.pinned = -1;
    this.matches = new Set();
    this.bySlot = Array.from({ length: 8 }, () => []);
    plan.slots.forEach((slot, i) => this.bySlot[slot].push(i));
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colour = Object.fromEntries(
      COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    this.slotColours = Array.from({ length: 8 }, (_, slot) =>
      style.getPropertyValue(`--slot${slot}`).trim(),
    );
    this.fadedColours = this.slotColours.map((colour) =>
      mixed(colour, this.colour.card, Number(this.colour.faded)),
    );
  }

  resize() {
    const { width, height } = this.marks.getBoundingClientRect();
    this.fit(width, height, window.devicePixelRatio || 1);
    for (const canvas of [this.base, this.marks]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
  }

  drawBase() {
    const pen = this.pen(this.base);
    pen.fillStyle = this.colour.card;
    pen.fillRect(this.left, this.plotTop, this.right - this.left, this.plotBottom - this.plotTop);
    this.drawAxes(pen);
    this.drawLoad(pen);
    this.clipped(pen, this.plotTop, this.plotBottom, () => this.drawBuffers(pen));
    this.drawLevels(pen);
    this.drawMarks();
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
    const { loadSteps, loadBytes } = this.plan;
    this.clipped(pen, this.loadTop - 1, this.loadBottom, () => {
      pen.beginPath();
      pen.moveTo(this.left, this.loadBottom);
      let y = this.loadY(this.plan.loadAt(Math.floor(this.x0)));
      pen.lineTo(this.left, y);
      for (let k = 0; k < loadSteps.length; k++) {
        if (loadSteps[k] <= this.x0) continue;
        if (loadSteps[k] >= this.x1) break;
        const x = this.x(loadSteps[k]);
        pen.lineTo(x, y);
        y = this.loadY(loadBytes[k]);
        pen.lineTo(x, y);
      }
      const end = Math.min(this.right, this.x(this.plan.steps));
      pen.lineTo(end, y);
      pen.lineTo(end, this.loadBottom);
      pen.fillStyle = this.colour["load-fill"];
      pen.fill();
      pen.strokeStyle = this.colour.load;
      pen.stroke();
    });
  }

  drawBuffers(pen) {
    const labels = [];
    for (const isLive of [false, true]) {
      this.bySlot.forEach((members, slot) => {
        pen.fillStyle = (isLive ? this.slotColours : this.fadedColours)[slot];
        for (const i of members) {
          if (this.plan.isLive(i, this.focus) !== isLive) continue;
          const box = this.box(i);
          if (box === null) continue;
          pen.fillRect(box.x, box.y, box.width, box.height);
          if (box.width >= 44 && box.height >= 13) labels.push([i, box, isLive]);
        }
      });
    }
    pen.font = LABEL_FONT;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    for (const [i, box, isLive] of labels.slice(0, 600)) this.drawName(pen, i, box, isLive);
  }

  drawName(pen, i, box, isLive) {
    const left = Math.max(box.x, this.left);
    const width = Math.min(box.x + box.width, this.right) - left - 10;
    const text = nameIn(this.plan.names[i], Math.floor(width / 5.9));
    if (text.length < 4) return;
    pen.fillStyle = isLive ? this.colour["on-fill"] : this.colour.ink;
    const top = Math.max(box.y, this.plotTop);
    pen.fillText(
      text,
      left + 5,
      (top + Math.min(box.y + box.height, this.plotBottom)) / 2 + 0.5,
      width,
    );
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
    const x = this.x(peak + 0.5);
    if (x >= this.left && x <= this.right) {
      pen.strokeStyle = this.colour.accent;
      pen.setLineDash([2, 3]);
      this.upright(pen, x);
      pen.setLineDash([]);
      pen.fillStyle = this.colour.accent;
      const text = `peak ${formatBytes(this.plan.loadMax)} at step ${peak.toLocaleString("en")}`;
      this.caption(pen, text, x, this.loadTop - 4, 70);
    }
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

  /* What follows the pointer and the selection, on its own canvas. */
  drawMarks() {
    const pen = this.pen(this.marks);
    if (this.focus !== this.plan.peak) this.drawFocus(pen);
    this.clipped(pen, this.plotTop, this.plotBottom, () => {
      pen.strokeStyle = this.colour.accent;
      pen.lineWidth = 1.5;
      for (const i of this.matches) this.outline(pen, i);
      if (this.pinned >= 0) {
        pen.lineWidth = 3;
        this.outline(pen, this.pinned);
      }
      if (this.hover >= 0) {
        pen.strokeStyle = this.colour.ink;
        pen.lineWidth = 2;
        this.outline(pen, this.hover);
      }
    });
  }

  drawFocus(pen) {
    const x = this.x(this.focus + 0.5);
    if (x < this.left || x > this.right) return;
    pen.strokeStyle = this.colour.ink;
    this.upright(pen, x);
    pen.fillStyle = this.colour.ink;
    const load = formatBytes(this.plan.loadAt(this.focus));
    const text = `step ${this.focus.toLocaleString("en")}: ${load}`;
    this.caption(pen, text, x, this.plotTop - 5, 130);
  }

  outline(pen, i) {
    const box = this.box(i);
    if (box !== null) pen.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
  }
}
