/* The arena at a step, its free boxes, and what the step does, beside the network. */

const BOXES_SHOWN = 12;
const BAR = { width: 300, height: 26 };

class Side {
  constructor(network) {
    this.network = network;
  }

  show(step) {
    const boxes = step === WHOLE ? [] : this.network.freeBoxes(step);
    this.arena(step, boxes);
    this.free(step, boxes);
    this.step(step);
  }

  /* The arena, addresses to the right: bands, what is live, and boxes that wait. */
  arena(step, boxes) {
    const { network } = this;
    const { bands, arena } = network.data;
    const scale = BAR.width / Math.max(1, arena);
    const parts = [];
    const add = (style, offset, size, text) => {
      const place = { x: offset * scale, y: 1, width: Math.max(0.5, size * scale) };
      const made = shape("rect", { ...place, height: BAR.height - 2 }, style);
      made.append(shape("title", {}, "", text));
      parts.push(made);
    };
    for (let band = 0; band + 1 < bands.length; band++) {
      const [low, high] = [bands[band], bands[band + 1]];
      const faint = step === WHOLE ? "" : " faint";
      add(`band${band}${faint}`, low, high - low, `${formatBytes(high - low)} from ${low}`);
    }
    if (step !== WHOLE) {
      for (const value of network.live(step)) {
        const { name, size, offset } = network.values[value];
        let at = offset;
        for (const [band, share] of network.sharesOf(value)) {
          add(`band${band}`, at, share * size, `${name}, ${formatBytes(size)} at ${offset}`);
          at += share * size;
        }
      }
      for (const { offset, size } of boxes) {
        add("waits", offset, size, `free: ${formatBytes(size)} at ${offset}`);
      }
    }
    $("arena").replaceChildren(...parts);
    const used = step === WHOLE ? arena : network.steps[step].live;
    $("used").textContent = formatBytes(used);
    $("used-of").textContent =
      step === WHOLE ? "arena of the whole plan" : `live at step ${step}, of ${formatBytes(arena)}`;
  }

  free(step, boxes) {
    const total = boxes.reduce((all, { size }) => all + size, 0);
    $("free").hidden = step === WHOLE;
    $("free-title").textContent = boxes.length
      ? `Free boxes: ${boxes.length}, ${formatBytes(total)}`
      : "Free boxes: none";
    const rows = [...boxes]
      .sort((a, b) => b.size - a.size)
      .slice(0, BOXES_SHOWN)
      .map(({ offset, size, last }) => {
        const row = element("li", "");
        row.append(element("span", `${formatBytes(size)} at ${offset.toLocaleString("en")}`));
        row.append(element("small", last.length ? `after ${last.join(", ")}` : "never a tensor"));
        return row;
      });
    if (boxes.length > BOXES_SHOWN) {
      rows.push(element("li", `and ${boxes.length - BOXES_SHOWN} more`, "rest"));
    }
    $("boxes").replaceChildren(...rows);
  }

  step(step) {
    const { network } = this;
    $("now").hidden = step === WHOLE;
    if (step === WHOLE) return;
    const { name, operator, kernel, reason } = network.steps[step];
    $("now-title").textContent = `Step ${step}: ${operator}`;
    const rows = [["node", name || "-"], ["kernel", kernel || "-"]];
    if (reason) rows.push(["allocates", reason]);
    for (const value of network.data.writes[step]) rows.push(["writes", this.fact(value)]);
    const scratch = network.data.scratch[step];
    if (scratch >= 0) rows.push(["scratch", this.fact(scratch)]);
    for (const value of network.data.reads[step]) {
      const left = network.pending(value, step);
      const after = left === 1 ? "1 reader left" : `${left} readers left`;
      rows.push(["reads", `${network.values[value].name}: ${after}`]);
    }
    for (const value of network.released(step)) {
      if (value !== scratch) rows.push(["releases", this.fact(value)]);
    }
    $("now-facts").replaceChildren(
      ...rows.flatMap(([key, text]) => [element("dt", key), element("dd", text)]),
    );
  }

  /* A value in one line: name, bytes, offset, and whose bytes it took over. */
  fact(value) {
    const { name, size, offset, planned, shares } = this.network.values[value];
    if (!planned) return `${name}, outside the arena`;
    const over = shares ? `, in the bytes of ${shares}` : "";
    return `${name}, ${formatBytes(size)} at ${offset.toLocaleString("en")}${over}`;
  }

  /* Lines about a box, for the text at the pointer. */
  about(box, step) {
    const { network } = this;
    if (box.level >= 0) return this.aboutBlock(box, step);
    const lines = [];
    if (box.node >= 0 && box.steps.length) {
      const { name, operator, kernel } = network.steps[box.node];
      lines.push(["", `step ${box.node}: ${operator}${kernel ? ` (${kernel})` : ""}`]);
      if (name) lines.push(["node", name]);
    }
    for (const value of box.values.slice(0, 6)) {
      const one = network.values[value];
      const { name, size, offset, type, start, stop, planned, shares, kind } = one;
      lines.push(["tensor", name]);
      if (type) lines.push(["type", type]);
      if (size) lines.push(["bytes", `${size.toLocaleString("en")} (${formatBytes(size)})`]);
      lines.push(["offset", planned ? offset.toLocaleString("en") : `outside the arena (${kind})`]);
      if (planned) lines.push(["steps", `${start} to ${stop - 1}`]);
      if (shares) lines.push(["in place of", shares]);
      const left = network.pending(value, step); // all of them for the whole plan
      lines.push([step === WHOLE ? "readers" : "readers left", String(left)]);
    }
    for (const [name, size] of network.data.weights[box.node] ?? []) {
      lines.push(["weight", `${name}, ${formatBytes(size)}`]);
    }
    return lines;
  }

  aboutBlock(box, step) {
    const { network } = this;
    const live = box.values.filter((value) => step === WHOLE || network.isLive(value, step));
    const bytes = live.reduce((all, value) => all + network.values[value].size, 0);
    return [
      ["", box.label],
      ["steps", `${box.steps.length}, from ${box.steps[0]} to ${box.steps.at(-1)}`],
      [step === WHOLE ? "values" : "live values", `${live.length}, ${formatBytes(bytes)}`],
      ["", "click to open"],
    ];
  }
}
