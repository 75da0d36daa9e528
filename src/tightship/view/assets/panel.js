/* Controls, and the lists beside the picture. */

const LIVE_SHOWN = 12;

class Panel {
  constructor(page) {
    this.page = page;
    this.layout = new Layout($("layout"), page.drawing);
    this.groups = new Groups(page.drawing);
    this.plans = (page.data.lengths ?? []).map(({ plan }) => plan);
  }

  get drawing() {
    return this.page.drawing;
  }

  listen() {
    const { page } = this;
    $("step").addEventListener("input", () => page.choose(Number($("step").value)));
    $("grouping").addEventListener("change", () => this.group(Number($("grouping").value)));
    $("share").addEventListener("input", () => page.blend(Number($("share").value) / 100));
    $("length").addEventListener("input", () => this.showLength(Number($("length").value)));
    $("png").addEventListener("click", () => this.save("png"));
    $("svg").addEventListener("click", () => this.save("svg"));
    $("perfetto").addEventListener("click", () => this.save("json"));
    $("layout").addEventListener("pointermove", (event) => this.point(event));
    $("layout").addEventListener("pointerleave", () => this.page.hover(-1));
    $("layout").addEventListener("click", (event) => this.goToLayout(event));
  }

  /* Fit all controls and lists to the page's plan. */
  showAll() {
    const { plan } = this.page;
    this.layout.drawing = this.drawing;
    this.groups.drawing = this.drawing;
    $("step").max = Math.max(0, plan.steps - 1);
    $("grouping").replaceChildren(
      ...plan.groupings.map(({ name }, index) => {
        const option = element("option", name);
        option.value = index;
        return option;
      }),
    );
    $("grouping").value = plan.groupings.indexOf(plan.grouping);
    for (const id of ["overlay-control", "overlay-key"]) $(id).hidden = !this.drawing.old;
    $("length-control").hidden = this.plans.length < 2;
    if (this.plans.length > 1) this.listLengths();
    this.showLegend();
    this.showStep();
  }

  listLengths() {
    const { lengths, lengthName } = this.page.data;
    const at = this.plans.findIndex((each) => each === this.page.plan || each === null);
    $("length").max = lengths.length - 1;
    if (this.lengthAt === undefined) this.lengthAt = at;
    $("length").value = this.lengthAt;
    $("length-name").textContent = lengthName;
    $("length-value").textContent = lengths[this.lengthAt].length.toLocaleString("en");
  }

  showLength(index) {
    const { data } = this.page;
    this.first ??= this.page.plan;
    this.lengthAt = index;
    const made = this.plans[index];
    const plan = made === null ? this.first : made instanceof Plan ? made : new Plan(made);
    if (made !== null) this.plans[index] = plan;
    for (const [id, html] of Object.entries((made === null ? data : plan).texts))
      if (id !== "measured") $(id).innerHTML = html;
    this.page.show(plan);
  }

  group(index) {
    const { plan, old } = this.drawing;
    const { name } = plan.groupings[index];
    plan.group(index);
    const same = old?.groupings.findIndex((each) => each.name === name) ?? -1;
    if (same >= 0) old.group(same);
    this.choose(-1);
    this.showLegend();
  }

  /* Dim every group but one; -1 for none. */
  choose(group) {
    this.drawing.chosenGroup = group;
    this.showStep();
    this.page.redraw();
  }

  toggle() {
    if (!this.drawing.old) return;
    $("share").value = this.drawing.share < 0.5 ? 100 : 0;
    this.page.blend(Number($("share").value) / 100);
  }

  stepBy(count) {
    const step = clamp(this.drawing.focus + count, 0, Math.max(0, this.page.plan.steps - 1));
    this.page.choose(step);
  }

  showLegend() {
    const items = this.page.plan.grouping.families.map(([slot, label]) => {
      const item = document.createElement("li");
      item.append(element("span", "", `swatch fill${slot}`), label);
      return item;
    });
    items.push(element("li", "strong colour: live at the chosen step"));
    document.querySelector(".legend").replaceChildren(...items);
  }

  showStep() {
    const { drawing } = this;
    const { plan, focus } = drawing;
    $("step").value = focus;
    const name = plan.stepNames[focus] ?? "";
    const what = [plan.operator(focus), name].filter(Boolean).join(" ");
    $("step-value").textContent = `${focus.toLocaleString("en")} ${what}`;
    $("step-value").title = what;
    this.showLive();
    $("groups").firstElementChild.textContent = `By ${plan.grouping.name}`;
    $("groups").lastElementChild.replaceChildren(...this.groups.rows((each) => this.choose(each)));
    if (drawing.ratio) this.layout.draw();
  }

  showLive() {
    const { shown, focus, plan } = this.drawing;
    const step = shown.stepOf(focus + 0.5);
    const live = shown.liveAt(step);
    const what = step === shown.peak ? "Live at the peak" : "Live";
    const whose = shown === plan ? "" : " of the old plan";
    $("live").firstElementChild.textContent =
      `${what}${whose}, step ${step.toLocaleString("en")}: ${formatBytes(shown.loadAt(step))}`;
    const rows = live.slice(0, LIVE_SHOWN).map((i) => this.liveRow(i));
    const rest = live.slice(LIVE_SHOWN);
    if (rest.length) {
      const bytes = rest.reduce((sum, i) => sum + shown.sizes[i], 0);
      const text = `and ${rest.length.toLocaleString("en")} smaller, ${formatBytes(bytes)}`;
      rows.push(element("li", text, "rest"));
    }
    $("live").lastElementChild.replaceChildren(...rows);
  }

  liveRow(i) {
    const { shown } = this.drawing;
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.title = shown.names[i];
    button.append(
      element("span", shown.names[i], "name"),
      element("span", formatBytes(shown.sizes[i])),
    );
    button.addEventListener("click", () => this.page.goTo(i));
    row.append(button);
    return row;
  }

  facts(i) {
    const { shown, plan, old } = this.drawing;
    const facts = shown.describe(i);
    const j = old ? shown.other[i] : -1;
    if (!old) return facts;
    const kind = DIFFERENCES[shown.groupings[0].groups.at[i]][0];
    const other = shown === plan ? old : plan;
    const whose = other === old ? "old plan" : "new plan";
    facts.push(["difference", kind]);
    if (j >= 0) {
      const steps = `steps ${other.starts[j]} to ${other.stops[j] - 1}`;
      const place = `at ${formatBytes(other.offsets[j])}`;
      facts.push([whose, `${formatBytes(other.sizes[j])}, ${steps}, ${place}`]);
    }
    return facts;
  }

  card(i) {
    const facts = document.createElement("dl");
    facts.className = "details";
    for (const [term, fact] of this.facts(i))
      facts.append(element("dt", term), element("dd", fact));
    return [element("p", this.drawing.shown.names[i], "tensor"), facts];
  }

  showPinned(i) {
    $("pinned").hidden = i < 0;
    if (i < 0) return;
    $("pinned").lastElementChild.replaceChildren(...this.card(i));
    $("spoken").textContent = [
      this.drawing.shown.names[i],
      ...this.facts(i).map((fact) => fact.join(" ")),
    ].join(", ");
  }

  layoutHit(event) {
    const box = $("layout").getBoundingClientRect();
    return this.layout.at(event.clientX - box.left, event.clientY - box.top);
  }

  point(event) {
    const hit = this.layoutHit(event);
    const { plan, i } = hit ?? {};
    $("layout").title = hit ? `${plan.names[i]}, ${formatBytes(plan.sizes[i])}` : "";
  }

  goToLayout(event) {
    const hit = this.layoutHit(event);
    if (!hit) return;
    if (this.drawing.old && hit.plan !== this.drawing.shown) this.toggle();
    this.page.goTo(hit.i);
  }

  async save(suffix) {
    const { plan, drawing } = this.page;
    if (suffix === "png") {
      download(await pictureOf(drawing), fileName(plan, suffix));
    } else if (suffix === "svg") {
      download(new Blob([vectorOf(drawing)], { type: "image/svg+xml" }), fileName(plan, suffix));
    } else {
      const text = JSON.stringify(traceOf(drawing.shown));
      download(new Blob([text], { type: "application/json" }), fileName(plan, "trace.json"));
    }
  }
}
