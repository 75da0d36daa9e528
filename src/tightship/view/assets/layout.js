/* Where the buffers that are live at the chosen step lie in the arena: one bar for each plan. */

const BAR_HEIGHT = 22;
const BAR_GAP = 18;
const BAR_TOP = 14;

class Layout {
  constructor(canvas, drawing) {
    Object.assign(this, { canvas, drawing });
    this.boxes = [];
  }

  draw() {
    const { canvas, drawing } = this;
    const plans = drawing.old ? [drawing.old, drawing.plan] : [drawing.plan];
    const height = BAR_TOP + plans.length * BAR_HEIGHT + (plans.length - 1) * BAR_GAP;
    canvas.style.height = `${height}px`;
    const width = canvas.clientWidth;
    canvas.width = Math.round(width * drawing.ratio);
    canvas.height = Math.round(height * drawing.ratio);
    const pen = drawing.pen(canvas);
    this.boxes = [];
    plans.forEach((plan, index) => this.bar(pen, plan, width, index));
  }

  bar(pen, plan, width, index) {
    const { drawing } = this;
    const step = plan.stepOf(drawing.focus + 0.5);
    const y = BAR_TOP + index * (BAR_HEIGHT + BAR_GAP);
    const scale = (width - 1) / (drawing.top || 1);
    pen.font = LABEL_FONT;
    pen.fillStyle = drawing.colour.soft;
    pen.textBaseline = "bottom";
    pen.textAlign = "left";
    const name = drawing.old ? (plan === drawing.old ? "old, " : "new, ") : "";
    pen.fillText(`${name}step ${step.toLocaleString("en")}`, 0, y - 2);
    pen.textAlign = "right";
    pen.fillText(formatBytes(plan.loadAt(step)), width, y - 2);
    pen.fillStyle = drawing.colour.grid;
    pen.fillRect(0, y, plan.arena * scale, BAR_HEIGHT);
    for (const i of plan.liveAt(step)) {
      const [x, size] = [plan.offsets[i] * scale, plan.sizes[i] * scale];
      const isDimmed = drawing.chosenGroup >= 0 && plan.groupAt[i] !== drawing.chosenGroup;
      pen.fillStyle = (isDimmed ? drawing.dimmedColours : drawing.slotColours)[plan.slots[i]];
      pen.fillRect(x, y, Math.max(1 / drawing.ratio, size - (size > 3 ? 1 : 0)), BAR_HEIGHT);
      this.boxes.push({ plan, i, x, y, width: size });
    }
  }

  /* The plan and buffer at a spot; null if there is none. */
  at(x, y) {
    const hits = this.boxes.filter(
      (box) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + BAR_HEIGHT,
    );
    return hits.length ? hits[hits.length - 1] : null;
  }
}
