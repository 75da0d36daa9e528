const KEPT_MS = 900 * 1000;
const SHOWN_MAX = 12;
const SIDE = 4;

// Samples of the process, and of each model by its label, as far as they have been asked for.
const samples = [];
const histories = new Map();
let started = 0;

const trim = (rows, now) => {
  while (rows.length && rows[0][0] < now - KEPT_MS) rows.shift();
};

// Keeps what a status adds; a driver that has started anew begins from nothing.
const keep = (said) => {
  if (said.started_ms !== started) {
    samples.length = 0;
    histories.clear();
    started = said.started_ms;
  }
  samples.push(...said.samples);
  trim(samples, said.now_ms);
  for (const label of histories.keys()) {
    if (!(label in said.histories)) histories.delete(label);
  }
  for (const [label, rows] of Object.entries(said.histories)) {
    if (!histories.has(label)) histories.set(label, []);
    histories.get(label).push(...rows);
    trim(histories.get(label), said.now_ms);
  }
};

const latest = () => samples.at(-1)?.[0] ?? 0;

const short = (count) => (count >= 100 || Number.isInteger(count) ? count.toFixed(0)
  : count.toFixed(count < 10 ? 2 : 1));

// What is drawn of a model: a title, the column of its samples, and that of a planned amount.
const FIGURES = [
  { name: "requests a second", column: 1, said: short },
  { name: "waiting", column: 2, said: short },
  { name: "requests in a run", column: 3, said: short },
  { name: "weights and programs", column: 4, planned: 5, said: (count) => bytes(count) },
];

const line = (rows, column, x, y) => rows.map((row, index) =>
  `${index ? "L" : "M"}${x(row[0]).toFixed(1)} ${y(row[column]).toFixed(1)}`).join("");

const drawFigure = (svg, rows, figure, first, last) => {
  const { width, height } = svg.getBoundingClientRect();
  svg.replaceChildren();
  if (rows.length === 0 || width === 0) return;
  const columns = [figure.column, ...(figure.planned ? [figure.planned] : [])];
  const highest = Math.max(...rows.flatMap((row) => columns.map((each) => row[each])));
  const x = (ms) => SIDE + ((ms - first) / Math.max(1, last - first)) * (width - 2 * SIDE);
  const y = (count) => height - 2 - (count / (highest || 1)) * (height - 6);
  const path = line(rows, figure.column, x, y);
  const floor = `L${x(rows.at(-1)[0]).toFixed(1)} ${y(0)}L${x(rows[0][0]).toFixed(1)} ${y(0)}Z`;
  svg.append(shape("path", { class: "area", d: path + floor }));
  svg.append(shape("path", { class: "resident", d: path }));
  if (figure.planned) {
    svg.append(shape("path", { class: "planned", d: line(rows, figure.planned, x, y) }));
  }
};

// The models with most requests of late, by their labels.
const busiest = () => [...histories.entries()]
  .map(([label, rows]) => [rows.reduce((sum, row) => sum + row[1], 0), label])
  .sort(([one, a], [other, b]) => other - one || (a < b ? -1 : 1))
  .slice(0, SHOWN_MAX)
  .map(([, label]) => label);

const figureOf = (figure) => {
  const found = made("figure");
  found.append(made("figcaption"), document.createElementNS(SVG, "svg"));
  found.lastChild.setAttribute("role", "img");
  found.firstChild.append(made("span", figure.name), made("b"));
  return found;
};

const rowOf = (label) => {
  const found = made("div", "", "history");
  found.dataset.label = label;
  found.append(made("h3", label), ...FIGURES.map(figureOf));
  return found;
};

// A row of small charts for each model, which stay where they are while their models do.
const drawHistories = () => {
  const shown = busiest(), place = at("histories");
  if (shown.join("\n") !== [...place.children].map((row) => row.dataset.label).join("\n")) {
    place.replaceChildren(...shown.map(rowOf));
  }
  at("histories-title").parentElement.hidden = shown.length === 0;  // what is hidden has no size
  const first = samples[0]?.[0] ?? 0, last = latest();
  for (const row of place.children) {
    const rows = histories.get(row.dataset.label) ?? [];
    FIGURES.forEach((figure, index) => {
      const [caption, svg] = row.children[index + 1].children;
      const now = rows.at(-1)?.[figure.column] ?? 0;
      const most = Math.max(0, ...rows.map((each) => each[figure.column]));
      const planned = rows.at(-1)?.[figure.planned];
      const beside = figure.planned ? `planned ${figure.said(planned ?? 0)}`
        : `at most ${figure.said(most)}`;
      caption.lastChild.textContent = `${figure.said(now)}, ${beside}`;
      svg.setAttribute("aria-label", `${figure.name}: ${caption.lastChild.textContent}`);
      drawFigure(svg, rows, figure, first, last);
    });
  }
};
