/* Where boxes and edges are, with some blocks open: what is around an open block moves apart. */

const PAD = 14;
const HEAD = 30; // height of an open block's name

/* A level's boxes and edges as objects. */
function readLevel({ name, size, boxes, edges }, index) {
  return {
    index,
    name,
    size,
    boxes: boxes.map(([label, detail, node, level, values, port, steps, place], at) => {
      const key = `${index}:${at}`;
      return { label, detail, node, level, values, port: Boolean(port), steps, place, key };
    }),
    edges: edges.map(([from, to, values, loose, route]) => {
      const points = [];
      for (let i = 0; i < route.length; i += 2) points.push([route[i], route[i + 1]]);
      return { from, to, values, loose: Boolean(loose), points };
    }),
  };
}

/* Place a level, whose blocks in `open` (by level) show what is in them. */
function placed(levels, index, open) {
  const level = levels[index];
  const inner = new Map();
  level.boxes.forEach((box, at) => {
    if (box.level >= 0 && open.has(box.level)) inner.set(at, placed(levels, box.level, open));
  });
  const grown = [...inner].map(([at, { width, height }]) => {
    const [x, y, w, h] = level.boxes[at].place;
    const size = { width: Math.max(w, width + 2 * PAD), height: Math.max(h, height + HEAD + PAD) };
    return { x, y, w, h, ...size };
  });
  const moveX = stretched(grown.map(({ x, w, width }) => [x, x + w, width / w]));
  const moveY = stretched(grown.map(({ y, h, height }) => [y, y + h, height / h]));
  const sizes = new Map([...inner.keys()].map((at, i) => [at, grown[i]]));
  const boxes = level.boxes.map((box, at) => {
    const [x, y, w, h] = box.place;
    const { width, height } = sizes.get(at) ?? { width: w, height: h };
    const middle = [moveX(x + w / 2), moveY(y + h / 2)];
    const place = { x: middle[0] - width / 2, y: middle[1] - height / 2, width, height };
    return { box, ...place, inner: inner.get(at) ?? null };
  });
  const edges = level.edges.map((edge) => {
    const points = edge.points.map(([x, y]) => [moveX(x), moveY(y)]);
    attach(edge.points, points, 0, 1, level.boxes[edge.from].place, boxes[edge.from]);
    const last = points.length - 1;
    attach(edge.points, points, last, last - 1, level.boxes[edge.to].place, boxes[edge.to]);
    return { edge, points };
  });
  return { level, boxes, edges, width: moveX(level.size[0]), height: moveY(level.size[1]) };
}

/* Where places are if intervals become longer: rows of start, stop and how many times as long.
   Where several meet, the longest of them counts. */
function stretched(rows) {
  const ends = [...new Set(rows.flatMap(([start, stop]) => [start, stop]))].sort((a, b) => a - b);
  const parts = ends.slice(1).map((stop, i) => {
    const start = ends[i];
    const here = rows.filter((row) => row[0] <= start && stop <= row[1]);
    const ratio = Math.max(1, ...here.map((row) => row[2]));
    return [start, stop, (ratio - 1) * (stop - start)];
  });
  return (at) =>
    parts.reduce((all, [start, stop, more]) => {
      return all + more * clamp((at - start) / (stop - start), 0, 1);
    }, at);
}

/* Put the end of a curve on the side of its box, and its control straight beside it. */
function attach(before, points, end, control, old, box) {
  const shareX = (before[end][0] - old[0]) / old[2];
  const shareY = (before[end][1] - old[1]) / old[3];
  points[end] = [box.x + shareX * box.width, box.y + shareY * box.height];
  if (Math.abs(before[control][0] - before[end][0]) < 0.2) points[control][0] = points[end][0];
  if (Math.abs(before[control][1] - before[end][1]) < 0.2) points[control][1] = points[end][1];
}

/* The data of a path. */
function curveOf(points) {
  const text = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
  let path = `M${text[0]}`;
  for (let i = 1; i < text.length; i += 3) path += `C${text.slice(i, i + 3).join(" ")}`;
  return path;
}
