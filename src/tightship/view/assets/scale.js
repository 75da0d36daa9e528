/* Numbers, names and colours as the picture needs them. */

function clamp(value, low, high) {
  return Math.max(low, Math.min(Math.max(low, high), value));
}

/* A share of one opaque #rrggbb colour, the rest of another. */
function mixed(colour, other, share) {
  const channels = [1, 3, 5].map((at) => {
    const [a, b] = [colour, other].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(share * a + (1 - share) * b);
  });
  return `#${channels.map((each) => each.toString(16).padStart(2, "0")).join("")}`;
}

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function shorten(text, length) {
  if (text.length <= length) return text;
  if (length < 4) return "";
  const tail = Math.floor((length - 1) / 2);
  return `${text.slice(0, length - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/* A tensor's name in `length` characters: its last part rather than its ends. */
function nameIn(name, length) {
  if (name.length <= length) return name;
  return shorten(name.slice(name.lastIndexOf("/") + 1), length);
}

/* About `count` round numbers of bytes between two addresses, all in one unit. */
function byteTicks(low, high, count) {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(high) / 10)));
  const unit = 1024 ** power;
  let step = roundStep((high - low) / unit / count) * unit;
  if (power === 0) step = Math.max(1, Math.round(step));
  const decimals = power ? clamp(Math.ceil(-Math.log10(step / unit) - 1e-9), 0, 6) : 0;
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) {
    ticks.push([tick, tick === 0 ? "0" : `${(tick / unit).toFixed(decimals)} ${UNITS[power]}`]);
  }
  return ticks;
}

function stepTicks(low, high, count) {
  const step = Math.max(1, roundStep((high - low) / count));
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(tick);
  return ticks;
}

function roundStep(least) {
  const scale = 10 ** Math.floor(Math.log10(least));
  return scale * ([1, 2, 5, 10].find((factor) => factor * scale >= least * 0.999) ?? 10);
}
