/* The plan behind the picture: columns of buffers, found by place, step or name. */

class Plan {
  /* `places` says where each of its steps begins on the page's axis; null if that is of its own. */
  constructor(data, places = null) {
    Object.assign(this, data);
    this.count = data.names.length;
    this.starts = Float64Array.from(data.starts);
    this.stops = Float64Array.from(data.stops);
    this.offsets = Float64Array.from(data.offsets);
    this.sizes = Float64Array.from(data.sizes);
    this.places = places;
    this.lefts = places ? this.starts.map((step) => this.placeOf(step)) : this.starts;
    this.rights = places ? this.stops.map((step) => this.placeOf(step)) : this.stops;
    this.loadMax = this.loadBytes.reduce((most, load) => Math.max(most, load), 0);
    this.timeMax = (this.times ?? []).reduce((most, time) => Math.max(most, time), 0);
    this.grid = new Grid(this);
    this.group(0);
  }

  /* Colour by another way to group buffers. */
  group(index) {
    this.grouping = this.groupings[index];
    this.slots = Uint8Array.from(this.grouping.slots);
    this.groupAt = Int32Array.from(this.grouping.groups.at);
  }

  placeOf(step) {
    const { places } = this;
    if (!places) return step;
    const whole = clamp(Math.floor(step), 0, places.length - 1);
    const next = places[Math.min(whole + 1, places.length - 1)];
    return places[whole] + (step - whole) * (next - places[whole]);
  }

  /* The plan's own step at a place of the page's axis. */
  stepOf(place) {
    const { places } = this;
    if (!places) return Math.floor(place);
    let low = 0;
    let high = places.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (places[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return Math.min(low, Math.max(0, this.steps - 1));
  }

  operator(step) {
    return step >= 0 && step < this.operators.at.length
      ? this.operators.words[this.operators.at[step]]
      : "";
  }

  kernel(step) {
    return step >= 0 && step < this.kernels.at.length
      ? this.kernels.words[this.kernels.at[step]]
      : "";
  }

  moduleOf(i) {
    const { groups } = this.groupings.find((each) => each.name === "module") ?? {};
    return groups ? groups.words[groups.at[i]] : "";
  }

  kind(i) {
    return this.kinds.words[this.kinds.at[i]];
  }

  isLive(i, step) {
    return this.starts[i] <= step && step < this.stops[i];
  }

  contains(i, step, bytes) {
    return (
      this.starts[i] <= step &&
      step < this.stops[i] &&
      this.offsets[i] <= bytes &&
      bytes < this.offsets[i] + this.sizes[i]
    );
  }

  /* The buffer at a place, the youngest if views lie on one another; -1 if the bytes are free. */
  at(x, y) {
    const step = this.stepOf(x);
    const bytes = Math.floor(y);
    let best = -1;
    this.grid.each(step, bytes, (i) => {
      if (this.contains(i, step, bytes) && (best < 0 || this.starts[i] >= this.starts[best]))
        best = i;
    });
    return best;
  }

  liveAt(step) {
    const live = [];
    for (let i = 0; i < this.count; i++) if (this.isLive(i, step)) live.push(i);
    return live.sort((a, b) => this.sizes[b] - this.sizes[a] || this.offsets[a] - this.offsets[b]);
  }

  loadAt(step) {
    let low = 0;
    let high = this.loadSteps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.loadSteps[middle] <= step) low = middle + 1;
      else high = middle;
    }
    return low ? this.loadBytes[low - 1] : 0;
  }

  find(text) {
    const wanted = text.toLowerCase();
    const found = [];
    for (let i = 0; i < this.count; i++) {
      if (this.names[i].toLowerCase().includes(wanted)) found.push(i);
    }
    return found.sort((a, b) => this.names[a].length - this.names[b].length || a - b);
  }

  overlaps(i, j) {
    return (
      this.offsets[i] < this.offsets[j] + this.sizes[j] &&
      this.offsets[j] < this.offsets[i] + this.sizes[i]
    );
  }

  /* Who holds some of the same bytes last before, at the same time, and first after buffer i. */
  sharers(i) {
    let before = -1;
    let after = -1;
    const during = [];
    for (let j = 0; j < this.count; j++) {
      if (j === i || !this.overlaps(i, j)) continue;
      if (this.stops[j] <= this.starts[i]) {
        if (before < 0 || this.stops[j] > this.stops[before]) before = j;
      } else if (this.starts[j] >= this.stops[i]) {
        if (after < 0 || this.starts[j] < this.starts[after]) after = j;
      } else {
        during.push(j);
      }
    }
    return { before, during, after };
  }

  /* The nearest buffer in a direction: dx in steps, dy in addresses. */
  neighbour(i, dx, dy) {
    let best = -1;
    let bestCost = Infinity;
    const middle = this.offsets[i] + this.sizes[i] / 2;
    for (let j = 0; j < this.count; j++) {
      if (j === i) continue;
      const ahead = dx
        ? (this.starts[j] - this.starts[i]) * dx
        : (this.offsets[j] - this.offsets[i]) * dy;
      const aside = dx
        ? Math.abs(this.offsets[j] + this.sizes[j] / 2 - middle) / (this.arena || 1)
        : Math.max(0, this.starts[j] - this.stops[i] + 1, this.starts[i] - this.stops[j] + 1) * 4;
      const cost = dx ? ahead + aside : ahead / (this.arena || 1) + aside;
      if (ahead > 0 && cost < bestCost) {
        best = j;
        bestCost = cost;
      }
    }
    return best;
  }

  describe(i) {
    const start = this.starts[i];
    const operator = this.operator(start);
    const facts = [];
    if (operator) facts.push(["operator", `${operator} ${this.stepNames[start]}`]);
    if (this.kernel(start)) facts.push(["kernel", this.kernel(start)]);
    facts.push([
      "size",
      `${formatBytes(this.sizes[i])} (${this.sizes[i].toLocaleString("en")} bytes)`,
    ]);
    const steps = this.stops[i] - start;
    facts.push([
      "lifetime",
      steps > 1 ? `steps ${start} to ${this.stops[i] - 1} (${steps} steps)` : `step ${start}`,
    ]);
    facts.push([
      "offset",
      `${formatBytes(this.offsets[i])} (${this.offsets[i].toLocaleString("en")})`,
    ]);
    if (this.times?.length)
      facts.push(["measured", `${formatTime(this.times[start])} of its step`]);
    const module = this.moduleOf(i);
    if (module) facts.push(["module", module]);
    if (this.kind(i) === "scratch") facts.push(["kind", "scratch of one kernel"]);
    if (this.shares[i] !== null) facts.push(["in place of", this.shares[i]]);
    const { before, during, after } = this.sharers(i);
    if (before >= 0) facts.push(["bytes before", this.names[before]]);
    if (during.length) facts.push(["bytes with", listed(during.map((j) => this.names[j]))]);
    if (after >= 0) facts.push(["bytes after", this.names[after]]);
    return facts;
  }
}

function listed(names) {
  return names.length > 3
    ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more`
    : names.join(", ");
}
