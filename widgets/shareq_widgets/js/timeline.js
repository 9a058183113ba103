// The timeline below the strip: journal time from left to right, idle stretches folded, marks merged by importance.

import { Keyed, add, clamp, clockText, paint, put, setText } from "./draw.js";

const NEAR = 9; // marks closer than this are shown as one, px
const EDGE = 7; // half of the thumb: the track's ends are there, px

// Times in ms since the epoch and their places on the axis, in ms of room from its start. A fold takes `folded_ms`.
export class Axis {
  constructor({ start_ms, end_ms, folds, folded_ms }) {
    Object.assign(this, { start_ms, end_ms, folds, folded_ms, length: 0 });
    this.length = this.place(end_ms);
  }
  place(ms) {
    let place = clamp(ms, this.start_ms, this.end_ms) - this.start_ms;
    for (const [from, to] of this.folds) {
      if (ms <= from) break;
      const idle = Math.min(ms, to) - from;
      place -= idle * (1 - this.folded_ms / (to - from));
    }
    return place;
  }
  time(place) {
    let ms = this.start_ms + clamp(place, 0, this.length);
    for (const [from, to] of this.folds) {
      if (ms <= from) break;
      ms = Math.min(from + (ms - from) * ((to - from) / this.folded_ms), ms + (to - from) - this.folded_ms);
    }
    return Math.round(Math.min(ms, this.end_ms));
  }
}

// Of marks that are near each other the most important one is shown, and stands for the others.
export function merged(marks, x) {
  const groups = [];
  for (const mark of [...marks].sort((a, b) => a.rank - b.rank || a.order - b.order)) {
    const at = x(mark), near = groups.find((group) => Math.abs(group.x - at) < NEAR);
    if (near) near.marks.push(mark);
    else groups.push({ x: at, marks: [mark] });
  }
  return groups.sort((a, b) => a.x - b.x);
}

export class Timeline {
  constructor(root, look, send) {
    Object.assign(this, { look, send, axis: null, scrubbing: false });
    const host = add(root, "div", { class: "sq-time" });
    this.range = add(host, "input", { type: "range", min: 0, step: 1, "aria-label": "time in the journal" });
    this.folds = new Keyed(add(host, "div", { class: "sq-folds" }), (parent) => add(parent, "span"));
    this.marks = new Keyed(add(host, "div", { class: "sq-marks" }), (parent) => {
      const mark = add(parent, "button", { type: "button", tabindex: -1 });
      add(mark, "span");
      return mark;
    });
    this.range.addEventListener("input", () => { this.scrubbing = true; send("seek_time", this.axis.time(Number(this.range.value))); });
    this.range.addEventListener("change", () => { this.scrubbing = false; });
  }
  take(axis, snap, total, width) {
    this.axis = new Axis(axis);
    Object.assign(this, { snap, total });
    put(this.range, { max: Math.max(this.axis.length, 1) });
    const share = (ms) => this.axis.place(ms) / Math.max(this.axis.length, 1), room = Math.max(width - 2 * EDGE, 1);
    this.folds.show(this.axis.folds, ([from]) => from, (node, [from, to]) => {
      put(node, { title: `${clockText(to - from)} without an event, folded` });
      node.style.setProperty("--sq-at", (share(from) + share(to)) / 2);
    });
    let free = 0; // where the last shown label ends: of labels that would overlap, the later are left to their tooltips
    this.marks.show(merged(snap.marks, (mark) => share(mark.time_ms) * room), ({ marks: [first] }) => `${first.order} ${first.kind}`, (node, { x, marks }) => {
      const [first] = marks, more = marks.length > 1 ? ` +${marks.length - 1}` : "", label = first.text + more;
      const half = label.length * 3 + 6, shown = x - half > free && x + half < width;
      if (shown) free = x + half;
      setText(node.firstChild, shown ? label : "");
      const title = marks.map(({ order, text }) => `${text}, event ${order}`).join("\n");
      put(node, { title, "aria-label": `go to event ${first.order}: ${first.text}` });
      node.style.setProperty("--sq-at", x / room);
      node.style.setProperty("--sq-mark", paint(this.look.marks[first.kind] ?? "soft"));
      node.onclick = () => this.send("seek_event", first.order);
    });
  }
  // The thumb runs with the shown time.
  run(now) {
    const { axis, range, snap, total } = this;
    if (!axis) return;
    if (!this.scrubbing) range.value = Math.round(axis.place(now));
    const text = `${clockText(now - axis.start_ms)} of ${clockText(axis.end_ms - axis.start_ms)}, event ${snap.order} of ${total}`;
    put(range, { "aria-valuetext": text });
    range.style.setProperty("--sq-done", axis.length ? range.value / axis.length : 0);
  }
}
