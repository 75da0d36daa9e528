/* The network behind the page, and the state of its values at a step. */

const WHOLE = -1; // in place of a step: the whole plan, without a moment
const LAST_NAMES = 3;

class Network {
  constructor(data) {
    this.data = data;
    this.values = data.values.map((row) => {
      const [name, kind, size, offset, start, stop, shares, type, readers] = row;
      const planned = offset >= 0 && size > 0;
      return { name, kind, size, offset, start, stop, shares, type, readers, planned };
    });
    this.steps = data.steps.map(([name, operator, kernel, live, reason]) => {
      return { name, operator, kernel, live, reason };
    });
    const all = [...this.values.keys()];
    this.planned = all.filter((value) => this.values[value].planned);
    this.stopsAt = new Map();
    for (const value of this.planned) {
      const { stop } = this.values[value];
      this.stopsAt.set(stop, [...(this.stopsAt.get(stop) ?? []), value]);
    }
  }

  isLive(value, step) {
    const { start, stop, planned } = this.values[value];
    return planned && start <= step && step < stop;
  }

  /* Steps after `step` that read a value. */
  pending(value, step) {
    const { readers } = this.values[value];
    return readers.length - readers.filter((reader) => reader <= step).length;
  }

  live(step) {
    return this.planned
      .filter((value) => this.isLive(value, step))
      .sort((a, b) => this.values[a].offset - this.values[b].offset);
  }

  /* Values whose bytes are free after a step. */
  released(step) {
    return this.stopsAt.get(step + 1) ?? [];
  }

  /* Memory that values have held before a step and none holds at it, by rising offsets. */
  freeBoxes(step) {
    const before = this.planned.filter((value) => this.values[value].start <= step);
    const held = this.merged(before.filter((value) => this.isLive(value, step)));
    const boxes = [];
    for (let [low, high] of this.merged(before)) {
      for (const [start, stop] of held) {
        if (stop <= low || start >= high) continue;
        if (start > low) boxes.push([low, start]);
        low = Math.max(low, stop);
      }
      if (low < high) boxes.push([low, high]);
    }
    const ended = before
      .filter((value) => this.values[value].stop <= step)
      .sort((a, b) => this.values[b].stop - this.values[a].stop);
    return boxes.map(([low, high]) => {
      const lay = ended.filter((value) => {
        const { offset, size } = this.values[value];
        return offset < high && low < offset + size;
      });
      const last = lay.slice(0, LAST_NAMES).map((value) => this.values[value].name);
      return { offset: low, size: high - low, last };
    });
  }

  merged(values) {
    const found = [];
    const ranges = values.map((value) => {
      const { offset, size } = this.values[value];
      return [offset, offset + size];
    });
    for (const [low, high] of ranges.sort((a, b) => a[0] - b[0])) {
      const last = found.at(-1);
      if (last && low <= last[1]) last[1] = Math.max(last[1], high);
      else found.push([low, high]);
    }
    return found;
  }

  /* Bands of a box: those of a node's largest value, or of all bytes that a block holds. */
  shares(box, step) {
    if (box.level < 0) return box.values.length ? this.sharesOf(box.values[0]) : [];
    const sums = new Map();
    for (const value of box.values) {
      if (step !== WHOLE && !this.isLive(value, step)) continue;
      for (const [band, share] of this.sharesOf(value)) {
        sums.set(band, Math.max(sums.get(band) ?? 0, share * this.values[value].size));
      }
    }
    return [...sums].sort((a, b) => a[0] - b[0]);
  }

  sharesOf(value) {
    return this.data.shares[value];
  }

  /* How a box looks at a step: whole, later, now, live or past. */
  look(box, step) {
    if (step === WHOLE) return "whole";
    if (box.port && box.values.every((value) => this.values[value].start > step)) return "later";
    if (!box.steps.length && !box.port) return "whole";
    if (!box.port && box.steps[0] > step) return "later";
    if (box.steps.includes(step)) return "now";
    if (box.values.some((value) => this.isLive(value, step))) return "live";
    const outside = box.values.every((value) => !this.values[value].planned);
    const waits = box.values.some((value) => this.pending(value, step) > 0);
    return outside && waits ? "live" : "past";
  }
}
