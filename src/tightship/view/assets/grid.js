/* Cells over step x address; each knows the buffers that touch it. */
class Grid {
  constructor(plan) {
    this.columns = Math.max(1, Math.min(256, plan.steps));
    this.rows = 128;
    this.width = Math.max(1, plan.steps) / this.columns;
    this.height = Math.max(1, plan.arena) / this.rows;
    const first = new Int32Array(this.columns * this.rows + 1);
    this.visit(plan, (cell) => {
      first[cell + 1] += 1;
    });
    for (let cell = 1; cell < first.length; cell++) first[cell] += first[cell - 1];
    this.first = first;
    this.members = new Int32Array(first[first.length - 1]);
    const next = first.slice();
    this.visit(plan, (cell, i) => {
      this.members[next[cell]++] = i;
    });
  }

  visit(plan, touch) {
    for (let i = 0; i < plan.count; i++) {
      if (plan.stops[i] <= plan.starts[i] || plan.sizes[i] <= 0) continue;
      const right = this.column(plan.stops[i] - 1);
      const top = this.row(plan.offsets[i] + plan.sizes[i] - 1);
      for (let row = this.row(plan.offsets[i]); row <= top; row++) {
        for (let column = this.column(plan.starts[i]); column <= right; column++)
          touch(row * this.columns + column, i);
      }
    }
  }

  column(step) {
    return Math.max(0, Math.min(this.columns - 1, Math.floor(step / this.width)));
  }

  row(bytes) {
    return Math.max(0, Math.min(this.rows - 1, Math.floor(bytes / this.height)));
  }

  each(step, bytes, touch) {
    const cell = this.row(bytes) * this.columns + this.column(step);
    for (let k = this.first[cell]; k < this.first[cell + 1]; k++) touch(this.members[k]);
  }
}
