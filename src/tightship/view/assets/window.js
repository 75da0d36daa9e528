/* The part of the plan that is shown, and where its steps and bytes are on the screen. */

const MARGIN = { left: 74, right: 14, top: 20, bottom: 38 };
const LOAD_HEIGHT = 72;
const GAP = 34;

class PlanWindow {
  /* `old` is a plan to compare with, or null. */
  constructor(plan, old) {
    this.plan = plan;
    this.old = old;
    this.top = Math.max(plan.arena, plan.bound, old?.arena ?? 0, 1) * 1.05;
    this.showAll();
  }

  showAll() {
    Object.assign(this, { x0: 0, x1: Math.max(1, this.plan.steps), y0: 0, y1: this.top });
  }

  /* Lay both plots out in so many CSS pixels, each of `ratio` device pixels. */
  fit(width, height, ratio) {
    this.ratio = ratio;
    this.left = MARGIN.left;
    this.right = Math.max(this.left + 40, width - MARGIN.right);
    this.loadTop = MARGIN.top;
    this.loadBottom = MARGIN.top + LOAD_HEIGHT;
    this.plotTop = this.loadBottom + GAP;
    this.plotBottom = Math.max(this.plotTop + 40, height - MARGIN.bottom);
  }

  x(step) {
    return this.left + ((step - this.x0) / (this.x1 - this.x0)) * (this.right - this.left);
  }

  y(bytes) {
    return (
      this.plotBottom - ((bytes - this.y0) / (this.y1 - this.y0)) * (this.plotBottom - this.plotTop)
    );
  }

  stepAt(x) {
    return this.x0 + ((x - this.left) / (this.right - this.left)) * (this.x1 - this.x0);
  }

  bytesAt(y) {
    return (
      this.y0 + ((this.plotBottom - y) / (this.plotBottom - this.plotTop)) * (this.y1 - this.y0)
    );
  }

  loadY(bytes) {
    return this.loadBottom - (bytes / this.top) * LOAD_HEIGHT;
  }

  zoom(factorX, factorY, atX, atY) {
    const spanX = clamp(
      (this.x1 - this.x0) * factorX,
      Math.min(2, this.plan.steps),
      Math.max(1, this.plan.steps),
    );
    const spanY = clamp((this.y1 - this.y0) * factorY, Math.min(64, this.top), this.top);
    const shareX = (atX - this.x0) / (this.x1 - this.x0);
    const shareY = (atY - this.y0) / (this.y1 - this.y0);
    this.place(atX - shareX * spanX, spanX, atY - shareY * spanY, spanY);
  }

  place(x0, spanX, y0, spanY) {
    this.x0 = clamp(x0, 0, Math.max(1, this.plan.steps) - spanX);
    this.x1 = this.x0 + spanX;
    this.y0 = clamp(y0, 0, this.top - spanY);
    this.y1 = this.y0 + spanY;
  }

  /* Bring a buffer into the window; leave the window alone if it already shows it well. */
  reveal(i, plan = this.plan) {
    const { lefts, rights, offsets, sizes } = plan;
    const [x, right] = [this.x(lefts[i]), this.x(rights[i])];
    const [bottom, y] = [this.y(offsets[i]), this.y(offsets[i] + sizes[i])];
    const isSeen =
      x >= this.left - 1 &&
      right <= this.right + 1 &&
      y >= this.plotTop - 1 &&
      bottom <= this.plotBottom + 1;
    if (isSeen && right - x >= 6 && bottom - y >= 4) return;
    const steps = rights[i] - lefts[i];
    const spanX = clamp(steps * 8, Math.min(12, this.plan.steps), Math.max(1, this.plan.steps));
    const spanY = clamp(sizes[i] * 6, 64, this.top);
    this.place(
      lefts[i] + steps / 2 - spanX / 2,
      spanX,
      offsets[i] + sizes[i] / 2 - spanY / 2,
      spanY,
    );
  }

  /* Where a buffer is on the screen, on whole device pixels; null if it is out of the window. */
  box(i, plan) {
    const { lefts, rights, offsets, sizes } = plan;
    if (
      rights[i] < this.x0 ||
      lefts[i] > this.x1 ||
      offsets[i] > this.y1 ||
      offsets[i] + sizes[i] < this.y0
    )
      return null;
    const x = this.snap(Math.max(this.x(lefts[i]), this.left - 4));
    const y = this.snap(Math.max(this.y(offsets[i] + sizes[i]), this.plotTop - 4));
    let width = this.snap(Math.min(this.x(rights[i]), this.right + 4)) - x;
    let height = this.snap(Math.min(this.y(offsets[i]), this.plotBottom + 4)) - y;
    if (width > 4) width -= 1;
    if (height > 4) height -= 1;
    const pixel = 1 / this.ratio;
    return { x, y, width: Math.max(pixel, width), height: Math.max(pixel, height) };
  }

  snap(position) {
    return Math.round(position * this.ratio) / this.ratio;
  }
}
