const PERIOD_MS = 1000;
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 64, RIGHT = 8, TOP = 10, BOTTOM = 22;

const at = (id) => document.getElementById(id);

const made = (tag, text = "", kind = "") => {
  const found = document.createElement(tag);
  found.textContent = text;
  found.className = kind;
  return found;
};

// As `format_bytes` writes them in a terminal.
const bytes = (count) => {
  if (count === undefined || count === null) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${count.toFixed(unit === 0 ? 0 : count < 10 ? 2 : 1)} ${units[unit]}`;
};

const duration = (us) => {
  if (us === null) return "";
  if (us < 1000) return `${us} us`;
  return us < 1e6 ? `${(us / 1000).toFixed(1)} ms` : `${(us / 1e6).toFixed(1)} s`;
};

const span = (ms) => {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  return s < 7200 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
};

// Rows of [text, class] cells take the place of those before; without any, one says so.
const fill = (id, rows, nothing) => {
  const body = at(id).tBodies[0];
  const columns = at(id).tHead.rows[0].cells.length;
  body.replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map(([text, kind]) => made("td", text, kind)));
    return row;
  }));
  if (rows.length === 0) {
    const cell = made("td", nothing, "quiet");
    cell.colSpan = columns;
    body.append(document.createElement("tr"));
    body.lastChild.append(cell);
  }
};

const models = (said) => fill("models", said.map((model) => [
  [model.name, ""],
  [model.reason && model.state !== "ready" ? `${model.state}: ${model.reason}` : model.state,
    model.state === "ready" ? "" : "quiet"],
  [bytes(model.weights_bytes), "n"],
  [bytes(model.run_bytes), "n"],
  [String(model.success_count), "n"],
  [String(model.fail_count), model.fail_count ? "n bad" : "n"],
  [String(model.pending_count), "n"],
  [duration(model.mean_us), "n"],
]), "The driver was started without models.");

const regions = (said) => fill("regions", said.map((region) => [
  [region.name, ""], [bytes(region.size_bytes), "n"],
]), "No client has named any.");

const clients = (said) => {
  const rows = [];
  for (const client of said) {
    const name = `${client.number}${client.is_connected ? "" : " (gone)"}`;
    const add = (what, state, size, resident) =>
      rows.push([[name, ""], [what, ""], [state, ""], [bytes(size), "n"], [bytes(resident), "n"]]);
    for (const pool of client.pools) {
      add(`pool ${pool.kind}`, pool.mode, pool.size_bytes, pool.resident_bytes);
    }
    for (const buffer of client.buffers) {
      add("buffer", buffer.is_filled ? "filled" : "empty", buffer.size_bytes, buffer.size_bytes);
    }
    for (const model of client.models) {
      add("model", `${bytes(model.arena_bytes)} of arena in a run`, model.weights_bytes,
        model.weights_bytes);
    }
    if (client.pools.length + client.buffers.length + client.models.length === 0) {
      add("nothing", "", undefined, undefined);
    }
  }
  fill("clients", rows, "No client is connected.");
};

const totals = (said) => {
  const [, resident, weights, arenas] = samples.at(-1) ?? [0, 0, 0, 0];
  const sum = (lists, key) => lists.flat().reduce((total, each) => total + each[key], 0);
  const facts = [
    ["resident", resident],
    ["weights", weights],
    ["arenas", arenas],
    ["regions", sum(said.regions, "size_bytes")],
    ["pools of clients", sum(said.clients.map((client) => client.pools), "size_bytes")],
    ["buffers", sum(said.clients.map((client) => client.buffers), "size_bytes")],
  ];
  at("totals").replaceChildren(...facts.map(([name, count]) => {
    const found = made("div");
    found.append(made("b", bytes(count)), name);
    return found;
  }));
};

const shape = (tag, attributes, text = "") => {
  const found = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  found.textContent = text;
  return found;
};

// A round number of bytes, so that four lines reach above the highest sample.
const stepFor = (highest) => {
  let step = 1024;
  while (step * 4 < highest) step *= 2;
  return step;
};

const chart = () => {
  const svg = at("chart");
  const { width, height } = svg.getBoundingClientRect();
  svg.replaceChildren();
  if (samples.length === 0) return;
  const first = samples[0][0], last = Math.max(samples.at(-1)[0], first + 1);
  const step = stepFor(Math.max(...samples.map((each) => Math.max(each[1], each[2] + each[3]))));
  const x = (ms) => LEFT + ((ms - first) / (last - first)) * (width - LEFT - RIGHT);
  const y = (count) => height - BOTTOM - (count / (4 * step)) * (height - TOP - BOTTOM);
  for (let line = 0; line <= 4; line += 1) {
    const level = y(line * step);
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: level, y2: level }));
    svg.append(shape("text", { x: LEFT - 8, y: level + 4, "text-anchor": "end" },
      bytes(line * step)));
  }
  const path = (value) => samples.map((each, index) =>
    `${index ? "L" : "M"}${x(each[0]).toFixed(1)} ${y(value(each)).toFixed(1)}`).join("");
  const resident = path((each) => each[1]);
  const floor = `L${x(samples.at(-1)[0]).toFixed(1)} ${y(0)}L${LEFT} ${y(0)}Z`;
  svg.append(shape("path", { class: "area", d: resident + floor }));
  svg.append(shape("path", { class: "resident", d: resident }));
  svg.append(shape("path", { class: "planned", d: path((each) => each[2] + each[3]) }));
  svg.append(shape("text", { x: LEFT, y: height - 6 }, `${span(last - first)} ago`));
  svg.append(shape("text", { x: width - RIGHT, y: height - 6, "text-anchor": "end" }, "now"));
  svg.setAttribute("aria-label", `Memory over the last ${span(last - first)}: `
    + `${bytes(samples.at(-1)[1])} resident now`);
};

const show = (said) => {
  keep(said);
  at("facts").textContent = `version ${said.version}, process ${said.pid}, `
    + `up ${span(said.now_ms - said.started_ms)}${said.is_draining ? ", ending" : ""}`;
  totals(said);
  chart();
  models(said.models);
  drawHistories();
  regions(said.regions);
  clients(said.clients);
};

const alarm = (text) => {
  at("alarm").hidden = text === "";
  at("alarm").textContent = text;
};

const ask = async () => {
  try {
    const response = await fetch(`/status?since=${latest()}`, { cache: "no-store" });
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.json());
    alarm("");
  } catch {
    alarm("The driver does not answer; what is shown is what it said last.");
  }
  setTimeout(ask, PERIOD_MS);
};

ask();
