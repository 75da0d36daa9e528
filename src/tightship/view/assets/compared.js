/* How the buffers of two plans differ, as one more way to group and colour them. */

const DIFFERENCES = [
  ["same", 6],
  ["moved", 0],
  ["other lifetime", 4],
  ["other size", 2],
  ["new", 5],
  ["gone", 3],
];
const [SAME, MOVED, LIFETIME, SIZE, NEW, GONE] = DIFFERENCES.keys();

/* Pair the buffers of both plans, and add the grouping to both as their first. */
function compare(plan, old, pairs) {
  plan.other = Int32Array.from(pairs);
  old.other = new Int32Array(old.count).fill(-1);
  plan.other.forEach((j, i) => {
    if (j >= 0) old.other[j] = i;
  });
  const kinds = Array.from(plan.other, (j, i) => (j < 0 ? NEW : difference(plan, i, old, j)));
  const before = Array.from(old.other, (i) => (i < 0 ? GONE : kinds[i]));
  addGrouping(plan, kinds);
  addGrouping(old, before);
}

function difference(plan, i, old, j) {
  if (plan.sizes[i] !== old.sizes[j]) return SIZE;
  // The first and the last step are compared: a step between two matched ones moves no lifetime.
  const isOther = (a, b) => Math.abs(a - old.placeOf(b)) > 0.01;
  if (isOther(plan.starts[i], old.starts[j]) || isOther(plan.stops[i] - 1, old.stops[j] - 1))
    return LIFETIME;
  return plan.offsets[i] === old.offsets[j] ? SAME : MOVED;
}

function addGrouping(plan, kinds) {
  plan.groupings.unshift({
    name: "difference",
    families: DIFFERENCES.map(([label, slot]) => [slot, label]),
    slots: kinds.map((kind) => DIFFERENCES[kind][1]),
    groups: { words: DIFFERENCES.map(([label]) => label), at: kinds },
  });
  plan.group(0);
}
