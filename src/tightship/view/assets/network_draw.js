/* Draws boxes and edges as elements of SVG; a step changes their classes only. */

const NAMESPACE = "http://www.w3.org/2000/svg";

function shape(tag, attributes, className, text) {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, typeof value === "number" ? Math.round(value * 10) / 10 : value);
  }
  if (className) made.setAttribute("class", className);
  if (text !== undefined) made.textContent = text;
  return made;
}

/* The last part of a name in so many characters. */
function labelIn(name, width, character) {
  return nameIn(name, Math.max(4, Math.floor((width - 10) / character)));
}

/* The head of each edge. */
function arrow() {
  const defs = shape("defs", {});
  const size = { markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse" };
  const marker = shape("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, ...size });
  marker.setAttribute("orient", "auto");
  marker.append(shape("path", { d: "M0 1L8 4L0 7z" }, "arrow"));
  defs.append(marker);
  return defs;
}

class NetworkDrawing {
  constructor(network, root) {
    this.network = network;
    this.root = root;
    this.levels = network.data.levels.map(readLevel);
    this.open = new Set();
    this.drawn = [];
    this.lines = [];
  }

  /* Draw all anew, as after a block was opened. */
  draw() {
    this.placed = placed(this.levels, 0, this.open);
    this.drawn = [];
    this.lines = [];
    const group = shape("g", {}, "level");
    group.append(arrow());
    this.drawLevel(this.placed, group, 0, 0);
    this.root.replaceChildren(group);
  }

  drawLevel(place, group, x, y) {
    for (const { edge, points } of place.edges) {
      const shifted = points.map((point) => [point[0] + x, point[1] + y]);
      const kind = edge.loose ? "edge loose" : "edge";
      const line = shape("path", { d: curveOf(shifted), "marker-end": "url(#arrow)" }, kind);
      this.lines.push({ edge, line, to: place.level.boxes[edge.to], kind });
      group.append(line);
    }
    for (const item of place.boxes) {
      const [left, top] = [item.x + x, item.y + y];
      if (item.inner) this.drawOpen(item, group, left, top);
      else this.drawBox(item, group, left, top);
    }
  }

  drawOpen(item, group, x, y) {
    const { box, width, height, inner } = item;
    const part = shape("g", { "data-key": box.key, tabindex: 0, role: "button" }, "open");
    part.setAttribute("aria-label", `Close ${box.label}`);
    part.append(shape("rect", { x, y, width, height, rx: 8 }, "frame"));
    const label = shape("text", { x: x + 12, y: y + 19 }, "head", "");
    label.textContent = `− ${labelIn(box.label, width - 24, 7.4)}`;
    part.append(label);
    group.append(part);
    this.drawn.push({ box, part, x, y, width, height, isOpen: true });
    this.drawLevel(inner, group, x + (width - inner.width) / 2, y + HEAD);
  }

  drawBox(item, group, x, y) {
    const { box, width, height } = item;
    const part = shape("g", { "data-key": box.key }, "box");
    if (box.level >= 0) {
      part.setAttribute("tabindex", 0);
      part.setAttribute("role", "button");
      part.setAttribute("aria-label", `Open ${box.label}`);
    }
    const fills = shape("g", {}, "fills");
    const frame = shape("rect", { x, y, width, height, rx: box.port ? 10 : 5 }, "frame");
    part.append(fills, frame, ...this.texts(box, x, y, width, height));
    const badge = shape("g", {}, "badge");
    badge.append(
      shape("circle", { cx: x + width, cy: y, r: 9 }),
      shape("text", { x: x + width, y: y + 4, "text-anchor": "middle" }, "", ""),
    );
    part.append(badge);
    group.append(part);
    this.drawn.push({ box, part, fills, badge, x, y, width, height });
  }

  texts(box, x, y, width, height) {
    const middle = { x: x + width / 2, "text-anchor": "middle" };
    const mark = box.level >= 0 ? "+ " : "";
    const label = mark + (labelIn(box.label, width - mark.length * 7, 7.4) || "?");
    const second = labelIn(box.detail, width, 6.6);
    if (box.port || !box.detail) {
      const style = box.port ? "small" : "label";
      return [shape("text", { ...middle, y: y + height / 2 + 4 }, style, label)];
    }
    return [
      shape("text", { ...middle, y: y + height / 2 - 3 }, "label", label),
      shape("text", { ...middle, y: y + height / 2 + 12 }, "small", second),
    ];
  }

  /* Show the state at a step. */
  show(step) {
    for (const each of this.drawn) if (!each.isOpen) this.showBox(each, step);
    for (const { edge, line, to, kind } of this.lines) {
      const taken = to.node >= 0 && this.takesOver(to, edge.values);
      const later = step !== WHOLE && to.steps.length > 0 && to.steps[0] > step;
      const now = step !== WHOLE && to.node >= 0 && to.node === step;
      const state = `${taken ? " place" : ""}${later ? " later" : ""}${now ? " now" : ""}`;
      line.setAttribute("class", kind + state);
    }
  }

  showBox(each, step) {
    const { network } = this;
    const { box, part, fills, badge, x, y, width, height } = each;
    const look = network.look(box, step);
    const shares = look === "later" ? [] : network.shares(box, step);
    const total = shares.reduce((all, [, share]) => all + share, 0);
    let left = x;
    const rectangles = shares.map(([band, share]) => {
      const wide = (width * share) / total;
      const made = shape("rect", { x: left, y, width: wide, height }, `band${band}`);
      left += wide;
      return made;
    });
    fills.replaceChildren(...rectangles);
    const filled = shares.length ? "filled" : "empty";
    part.setAttribute("class", `box ${look} ${filled}${box.port ? " port" : ""}`);
    const count = this.counter(box, look, step);
    badge.setAttribute("class", `badge${count === 0 ? " zero" : ""}`);
    badge.toggleAttribute("hidden", count === null);
    badge.lastChild.textContent = count ?? "";
  }

  /* Readers that the value of a node still waits for; null if that is not shown. */
  counter(box, look, step) {
    if (step === WHOLE || box.port || box.node < 0 || !box.values.length) return null;
    if (look === "later" || look === "past") return null;
    const value = box.values[0];
    const count = this.network.pending(value, step);
    return count || this.network.released(step).includes(value) ? count : null;
  }

  takesOver(box, values) {
    const taken = box.values.map((value) => this.network.values[value].shares);
    return values.some((value) => taken.includes(this.network.values[value].name));
  }

  /* The innermost block, open or closed, that has a step in it, or its node. */
  boxOf(step) {
    const holding = this.drawn.filter(({ box }) => !box.port && box.steps.includes(step));
    return holding.at(-1) ?? null;
  }
}
