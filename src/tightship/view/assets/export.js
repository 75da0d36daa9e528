/* Files that the page makes of what it shows: a picture, or a trace for Perfetto. */

const STEP_MICROSECONDS = 1000; // length of a step that was not timed

function fileName(plan, suffix) {
  const name = plan.title.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/\.(onnx|tship|pt2)$/, "");
  return `${name || "plan"}.${suffix}`;
}

function pictureOf(drawing) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: drawing.base.width, height: drawing.base.height });
  const pen = canvas.getContext("2d");
  pen.fillStyle = drawing.colour.page;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(drawing.base, 0, 0);
  pen.drawImage(drawing.marks, 0, 0);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function vectorOf(drawing) {
  const pen = new VectorPen(
    drawing.base.width / drawing.ratio,
    drawing.base.height / drawing.ratio,
  );
  drawing.drawPlot(pen, (_, plan) => drawing.paint(plan, new VectorTarget(pen, drawing)));
  drawing.drawOver(pen);
  return pen.document(drawing.colour.page);
}

/* Trace events: steps, live bytes, and an asynchronous slice for the lifetime of each buffer. */
function traceOf(plan) {
  const ends = [0];
  for (let step = 0; step < plan.steps; step++) {
    const taken = plan.times?.length ? plan.times[step] / 1000 : STEP_MICROSECONDS;
    ends.push(ends[step] + (taken || 0));
  }
  const at = (step) => ends[clamp(step, 0, ends.length - 1)];
  const events = [
    { name: "process_name", ph: "M", pid: 1, tid: 0, args: { name: plan.title } },
    { name: "thread_name", ph: "M", pid: 1, tid: 1, args: { name: "steps" } },
  ];
  plan.stepNames.forEach((name, step) => {
    const args = { operator: plan.operator(step), kernel: plan.kernel(step), step };
    events.push({
      name: name || `step ${step}`, ph: "X", pid: 1, tid: 1, ts: at(step),
      dur: at(step + 1) - at(step), args,
    });
  });
  const count = (step, bytes) =>
    events.push({ name: "live bytes", ph: "C", pid: 1, tid: 0, ts: at(step), args: { bytes } });
  plan.loadSteps.forEach((step, k) => count(step, plan.loadBytes[k]));
  count(plan.steps, 0);
  for (let i = 0; i < plan.count; i++) {
    const one = { name: plan.names[i], cat: plan.kind(i), id: i, pid: 1, tid: 2 };
    const args = {
      size_bytes: plan.sizes[i], offset_bytes: plan.offsets[i],
      start_step: plan.starts[i], stop_step: plan.stops[i],
    };
    events.push({ ...one, ph: "b", ts: at(plan.starts[i]), args });
    events.push({ ...one, ph: "e", ts: at(plan.stops[i]) });
  }
  return { traceEvents: events, displayTimeUnit: "ms" };
}
