/* The picture on its canvases: the buffers, what is around them, marks on top. */

const LABELS_MAX = 600;
const LABEL_WIDTH = 44;
const LABEL_HEIGHT = 13;

class Drawing extends Axes {
  constructor(plan, old, base, marks) {
    super(plan, old, base, marks);
    this.share = 1; // of the new plan in the picture, the rest is of the old one
    this.hover = -1;
    this.pinned = -1;
    this.chosenGroup = -1;
    this.matches = new Set();
    this.rasters = [new Raster(), new Raster()];
  }

  /* The plan that the pointer, labels and lists are about. */
  get shown() {
    return this.old && this.share < 0.5 ? this.old : this.plan;
  }

  drawBase() {
    this.drawPlot(this.pen(this.base), (pen, plan, raster) => {
      raster.begin(
        Math.round((this.right - this.left) * this.ratio),
        Math.round((this.plotBottom - this.plotTop) * this.ratio),
      );
      const labels = this.paint(plan, raster);
      raster.end();
      const [width, height] = [raster.width / this.ratio, raster.height / this.ratio];
      pen.drawImage(raster.canvas, this.left, this.plotTop, width, height);
      return labels;
    });
    this.drawMarks();
  }

  /* Draw everything but the marks; `fill` draws the buffers of a plan and returns their labels. */
  drawPlot(pen, fill) {
    pen.fillStyle = this.colour.card;
    pen.fillRect(this.left, this.plotTop, this.right - this.left, this.plotBottom - this.plotTop);
    this.drawAxes(pen);
    this.drawLoad(pen);
    this.clipped(pen, this.plotTop, this.plotBottom, () => this.drawBuffers(pen, fill));
    this.drawLevels(pen);
  }

  drawBuffers(pen, fill) {
    let labels = [];
    const layers = this.old
      ? [
          [this.old, 1 - this.share],
          [this.plan, this.share],
        ]
      : [[this.plan, 1]];
    layers.forEach(([plan, share], index) => {
      if (share <= 0) return;
      pen.globalAlpha = share;
      const found = fill(pen, plan, this.rasters[index]);
      pen.globalAlpha = 1;
      if (plan === this.shown) labels = found;
    });
    pen.font = LABEL_FONT;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    for (const [i, isLive] of labels) this.drawName(pen, i, this.box(i, this.shown), isLive);
    pen.font = FONT;
  }

  /* Fill the boxes of a plan's buffers, those live at the chosen step last, on `target`, which has
     device pixels from the plot's corner; return buffers with room for a name. */
  paint(plan, target) {
    const { lefts, rights, offsets, sizes, starts, stops, slots, groupAt, count } = plan;
    const { ratio, x0, y1, chosenGroup } = this;
    const scaleX = (ratio * (this.right - this.left)) / (this.x1 - x0);
    const scaleY = (ratio * (this.plotBottom - this.plotTop)) / (y1 - this.y0);
    const { width, height } = target;
    const focus = plan.stepOf(this.focus + 0.5);
    const [strong, faded, dimmed] = [this.slotColours, this.fadedColours, this.dimmedColours].map(
      (colours) => colours.map((each) => target.colour(each)),
    );
    const gap = Math.round(ratio);
    const labels = [];
    for (const isStrong of [false, true]) {
      for (let i = 0; i < count; i++) {
        if ((starts[i] <= focus && focus < stops[i]) !== isStrong) continue;
        const [from, to] = [(lefts[i] - x0) * scaleX, (rights[i] - x0) * scaleX];
        if (to < 0 || from > width) continue;
        const [top, end] = [(y1 - offsets[i] - sizes[i]) * scaleY, (y1 - offsets[i]) * scaleY];
        if (end < 0 || top > height) continue;
        const left = from < 0 ? 0 : Math.round(from);
        const upper = top < 0 ? 0 : Math.round(top);
        let right = to > width ? width : Math.round(to);
        let lower = end > height ? height : Math.round(end);
        if (right - left > 4 * ratio) right -= gap;
        if (lower - upper > 4 * ratio) lower -= gap;
        if (right <= left) right = left + 1;
        if (lower <= upper) lower = upper + 1;
        const isDimmed = chosenGroup >= 0 && groupAt[i] !== chosenGroup;
        const colours = isDimmed ? dimmed : isStrong ? strong : faded;
        target.rect(left, upper, right, lower, colours[slots[i]]);
        if (
          !isDimmed &&
          labels.length < LABELS_MAX &&
          right - left >= LABEL_WIDTH * ratio &&
          lower - upper >= LABEL_HEIGHT * ratio
        )
          labels.push([i, isStrong]);
      }
    }
    return labels;
  }

  drawName(pen, i, box, isLive) {
    const left = Math.max(box.x, this.left);
    const width = Math.min(box.x + box.width, this.right) - left - 10;
    const text = nameIn(this.shown.names[i], Math.floor(width / 5.9));
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

  /* What follows the pointer and the selection, on its own canvas. */
  drawMarks() {
    this.drawOver(this.pen(this.marks));
  }

  drawOver(pen) {
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
    const { shown } = this;
    const step = shown.stepOf(this.focus + 0.5);
    const text = `step ${step.toLocaleString("en")}: ${formatBytes(shown.loadAt(step))}`;
    this.caption(pen, text, x, this.plotTop - 5, 130);
  }

  outline(pen, i) {
    const box = this.box(i, this.shown);
    if (box !== null) pen.strokeRect(box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
  }
}
