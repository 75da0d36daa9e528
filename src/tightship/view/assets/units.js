/* Amounts as texts. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function formatBytes(bytes) {
  let power = 0;
  while (power < UNITS.length - 1 && Number(bytes.toFixed(2)) >= 1023.95) {
    bytes /= 1024;
    power += 1;
  }
  if (power === 0) return `${Math.round(bytes)} B`;
  return `${bytes.toFixed(bytes < 9.995 ? 2 : 1)} ${UNITS[power]}`;
}

function formatTime(ns) {
  if (!(ns >= 0)) return "";
  return ns < 1e6 ? `${(ns / 1e3).toFixed(1)} µs` : `${(ns / 1e6).toFixed(2)} ms`;
}
