/* The page: slider, pointer, keys, search and files. */

const DRAG = 4;
const PLAY_MS = 450;
const MARGINS = 26;
const STYLED = [
  "fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight",
];

class NetworkPage {
  constructor(data) {
    this.network = new Network(data);
    this.drawing = new NetworkDrawing(this.network, $("drawing"));
    this.side = new Side(this.network);
    this.step = data.first;
    this.timer = null;
    this.drawing.draw();
    $("step").max = this.network.steps.length - 1;
    this.listen();
    this.fit();
    this.choose(this.step);
  }

  listen() {
    const stage = $("drawing");
    $("step").addEventListener("input", () => this.choose(Number($("step").value)));
    $("play").addEventListener("click", () => this.play());
    $("to-peak").addEventListener("click", () => this.choose(this.network.data.peak));
    $("to-whole").addEventListener("click", () => this.choose(WHOLE));
    $("zoom-in").addEventListener("click", () => this.zoom(0.7));
    $("zoom-out").addEventListener("click", () => this.zoom(1 / 0.7));
    $("to-all").addEventListener("click", () => this.fit());
    $("open-all").addEventListener("click", () => this.openAll());
    $("open-all").hidden = this.drawing.levels.length < 2;
    $("png").addEventListener("click", () => this.save("png"));
    $("svg").addEventListener("click", () => this.save("svg"));
    $("search").addEventListener("input", () => this.search($("search").value));
    stage.addEventListener("pointerdown", (event) => this.press(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    stage.addEventListener("pointerup", (event) => this.release(event));
    stage.addEventListener("pointerleave", () => this.hint(null));
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    document.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe($("stage"));
  }

  /* Show a step, or the whole plan. */
  choose(step) {
    this.step = clamp(step, WHOLE, this.network.steps.length - 1);
    $("step").value = this.step;
    const whole = this.step === WHOLE;
    const at = whole ? "" : this.network.steps[this.step];
    $("step-value").textContent = whole ? "whole plan" : `${this.step}: ${at.operator} ${at.name}`;
    this.drawing.show(this.step);
    this.side.show(this.step);
    if (!whole) this.follow();
  }

  /* Bring the node of the step into the window, if it is not in it. */
  follow() {
    const found = this.drawing.boxOf(this.step);
    if (found) this.reveal(found);
  }

  reveal({ x, y, width, height }) {
    const view = this.view;
    const isSeen =
      x >= view.x &&
      y >= view.y &&
      x + width <= view.x + view.width &&
      y + height <= view.y + view.height;
    if (isSeen) return;
    view.x = x + width / 2 - view.width / 2;
    view.y = y + height / 2 - view.height / 2;
    this.look();
  }

  play() {
    const isOn = this.timer !== null;
    clearInterval(this.timer);
    this.timer = isOn ? null : setInterval(() => this.tick(), PLAY_MS);
    $("play").textContent = isOn ? "Play" : "Stop";
    if (!isOn && this.step >= this.network.steps.length - 1) this.choose(0);
  }

  tick() {
    if (this.step >= this.network.steps.length - 1) this.play();
    else this.choose(this.step + 1);
  }

  /* Window of the drawing in its own units. */
  fit() {
    const { width, height } = this.drawing.placed;
    const box = $("stage").getBoundingClientRect();
    const ratio = box.width / Math.max(1, box.height);
    const tall = Math.max(height + 2 * MARGINS, (width + 2 * MARGINS) / ratio, 120);
    const wide = tall * ratio;
    this.view = { x: (width - wide) / 2, y: (height - tall) / 2, width: wide, height: tall };
    if (tall * 1.02 > height + 2 * MARGINS && tall > height * 1.5) this.view.y = -MARGINS;
    this.look();
  }

  resize() {
    const box = $("stage").getBoundingClientRect();
    const middle = this.view.y + this.view.height / 2;
    this.view.height = (this.view.width * box.height) / Math.max(1, box.width);
    this.view.y = middle - this.view.height / 2;
    this.look();
  }

  look() {
    const { x, y, width, height } = this.view;
    const window = [x, y, width, height].map((each) => each.toFixed(1));
    $("drawing").setAttribute("viewBox", window.join(" "));
  }

  zoom(factor, atX = 0.5, atY = 0.5) {
    const { placed } = this.drawing;
    const view = this.view;
    const width = clamp(view.width * factor, 160, 3 * Math.max(placed.width, placed.height, 800));
    const height = (width * view.height) / view.width;
    view.x += (view.width - width) * atX;
    view.y += (view.height - height) * atY;
    Object.assign(view, { width, height });
    this.look();
  }

  wheel(event) {
    event.preventDefault();
    const box = $("stage").getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
    this.zoom(Math.exp(clamp(event.deltaY, -240, 240) / 400), x, y);
  }

  press(event) {
    this.pressed = { x: event.clientX, y: event.clientY, view: { ...this.view }, moved: false };
    $("drawing").setPointerCapture(event.pointerId);
    this.pressed.key = event.target.closest("[data-key]")?.dataset.key;
  }

  move(event) {
    if (!this.pressed) {
      this.hint(event.target.closest("[data-key]"), event);
      return;
    }
    const [x, y] = [event.clientX - this.pressed.x, event.clientY - this.pressed.y];
    if (Math.hypot(x, y) > DRAG) this.pressed.moved = true;
    if (!this.pressed.moved) return;
    const scale = this.view.width / $("stage").getBoundingClientRect().width;
    this.view.x = this.pressed.view.x - x * scale;
    this.view.y = this.pressed.view.y - y * scale;
    this.look();
  }

  release() {
    const { key, moved } = this.pressed ?? { moved: true };
    this.pressed = null;
    if (!moved && key) this.click(key);
  }

  find(key) {
    return this.drawing.drawn.find(({ box }) => box.key === key);
  }

  /* A block opens or closes, and stays where it is; a node's step is chosen. */
  click(key) {
    const found = this.find(key);
    if (!found) return;
    if (found.box.level < 0) {
      if (found.box.steps.length) this.choose(found.box.steps[0]);
      return;
    }
    const { open } = this.drawing;
    if (!open.delete(found.box.level)) open.add(found.box.level);
    this.redraw();
    const after = this.find(key);
    this.view.x += after.x + after.width / 2 - (found.x + found.width / 2);
    this.view.y += after.y - found.y;
    this.look();
    this.choose(this.step);
  }

  redraw() {
    $("open-all").textContent = this.drawing.open.size ? "Close all" : "Open all";
    this.drawing.draw();
  }

  openAll() {
    const { open, levels } = this.drawing;
    const isOpen = open.size > 0;
    open.clear();
    if (!isOpen) for (const { index } of levels.slice(1)) open.add(index);
    this.redraw();
    this.fit();
    this.choose(this.step);
  }

  hint(part, event) {
    const tip = $("tip");
    const found = part && this.find(part.dataset.key);
    tip.hidden = !found || found.isOpen === true;
    if (tip.hidden) return;
    const list = element("dl", "", "details");
    for (const [key, text] of this.side.about(found.box, this.step)) {
      if (key) list.append(element("dt", key), element("dd", text));
      else list.append(element("dd", text, "wide"));
    }
    tip.replaceChildren(list);
    const box = $("stage").getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    tip.style.left = `${clamp(x + 14, 4, box.width - tip.offsetWidth - 4)}px`;
    tip.style.top = `${clamp(y + 14, 4, box.height - tip.offsetHeight - 4)}px`;
  }

  /* Mark the boxes whose node or tensor has a name, and go to the first. */
  search(text) {
    const wanted = text.toLowerCase();
    const hasIt = (name) => name.toLowerCase().includes(wanted);
    const { steps, values } = this.network;
    const names = (box) => [
      box.label,
      ...box.steps.map((step) => steps[step].name),
      ...box.values.map((value) => values[value].name),
    ];
    let first = null;
    let count = 0;
    for (const each of this.drawing.drawn) {
      const isFound = wanted !== "" && !each.isOpen && names(each.box).some(hasIt);
      each.part.toggleAttribute("data-found", isFound);
      if (isFound) [first, count] = [first ?? each, count + 1];
    }
    $("matches").textContent = wanted ? `${count} found` : "";
    if (first) this.reveal(first);
  }

  key(event) {
    const part = event.target.closest?.("[data-key]");
    if (part && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      this.click(part.dataset.key);
      return;
    }
    if (event.target.closest?.("input, select, button") && event.key !== "Escape") return;
    const keys = {
      "[": () => this.choose(this.step - 1),
      "]": () => this.choose(this.step + 1),
      ArrowLeft: () => this.choose(this.step - 1),
      ArrowRight: () => this.choose(this.step + 1),
      "+": () => this.zoom(0.7),
      "-": () => this.zoom(1 / 0.7),
      0: () => this.fit(),
      p: () => this.choose(this.network.data.peak),
      Escape: () => this.choose(WHOLE),
      "/": () => $("search").focus(),
      " ": () => this.play(),
    };
    const act = keys[event.key.length > 1 ? event.key : event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /* The drawing as a document of its own, with the colours that it has now. */
  vector() {
    const source = $("drawing");
    const copy = source.cloneNode(true);
    const parts = [source, ...source.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((part, index) => {
      const style = getComputedStyle(parts[index]);
      if (style.display === "none") part.setAttribute("display", "none");
      for (const name of STYLED) part.setAttribute(name, style.getPropertyValue(name));
      if (part.localName !== "marker") part.removeAttribute("id");
      for (const name of ["class", "tabindex", "role", "data-key"]) part.removeAttribute(name);
    });
    const { width, height } = this.drawing.placed;
    const size = [width + 2 * MARGINS, height + 2 * MARGINS];
    copy.setAttribute("viewBox", `${-MARGINS} ${-MARGINS} ${size.join(" ")}`);
    copy.setAttribute("width", size[0]);
    copy.setAttribute("height", size[1]);
    copy.setAttribute("xmlns", NAMESPACE);
    copy.setAttribute("font-family", "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif");
    const colour = getComputedStyle(document.body).backgroundColor;
    copy.prepend(
      shape("rect", { x: -MARGINS, y: -MARGINS, width: size[0], height: size[1], fill: colour }),
    );
    return { text: new XMLSerializer().serializeToString(copy), size };
  }

  async save(kind) {
    const { text, size } = this.vector();
    const name = this.network.data.title.replace(/[^A-Za-z0-9._-]+/g, "_") || "network";
    const isVector = kind === "svg";
    const blob = isVector ? new Blob([text], { type: "image/svg+xml" }) : await raster(text, size);
    download(blob, `${name}.${kind}`);
    return blob;
  }
}

/* A drawing as PNG, at most so large that every browser makes it. */
async function raster(text, [width, height]) {
  const scale = Math.min(2, 8000 / Math.max(width, height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

const page = new NetworkPage(JSON.parse($("network").textContent));
window.tightship = { page, network: page.network, drawing: page.drawing };
