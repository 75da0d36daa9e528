/* Bytes of the buffers live at the chosen step, by group. */

const GROUPS_SHOWN = 14;

class Groups {
  constructor(drawing) {
    this.drawing = drawing;
  }

  /* Groups of both plans with the sums of their live buffers, largest first. */
  sums() {
    const { plan, old, focus } = this.drawing;
    const found = new Map();
    for (const [index, each] of [old, plan].entries()) {
      if (!each) continue;
      const step = each.stepOf(focus + 0.5);
      for (const i of each.liveAt(step)) {
        const name = each.grouping.groups.words[each.groupAt[i]];
        if (!found.has(name)) found.set(name, { name, bytes: [0, 0] });
        found.get(name).bytes[index] += each.sizes[i];
      }
    }
    const weight = ({ bytes }) => Math.max(...bytes);
    return [...found.values()].sort((a, b) => weight(b) - weight(a) || (a.name < b.name ? -1 : 1));
  }

  rows(choose) {
    const { plan, old, chosenGroup } = this.drawing;
    const sums = this.sums();
    const rows = sums.slice(0, GROUPS_SHOWN).map(({ name, bytes }) => {
      const row = document.createElement("li");
      const button = document.createElement("button");
      const group = plan.grouping.groups.words.indexOf(name);
      button.type = "button";
      button.title = name;
      button.setAttribute("aria-pressed", String(group >= 0 && group === chosenGroup));
      button.append(element("span", name, "name"));
      if (old) button.append(element("span", `${formatBytes(bytes[0])} →`, "before"));
      button.append(element("span", formatBytes(bytes[1])));
      button.addEventListener("click", () => choose(group === chosenGroup ? -1 : group));
      row.append(button);
      return row;
    });
    const rest = sums.length - rows.length;
    if (rest > 0) rows.push(element("li", `and ${rest.toLocaleString("en")} more`, "rest"));
    return rows;
  }
}
