// The timeline below the strip: journal time from left to right, idle stretches folded, marks merged by importance.

/** @import { Look, Mark, Send, Snapshot, TimeAxis } from "./types.d.ts" */

import { Keyed, add, clamp, clockText, paint, put, setText } from "./draw.js";

const NEAR = 9; // marks closer than this are shown as one, px
const EDGE = 7; // half of the thumb: the track's ends are there, px

// Times in ms since the epoch and their places on the axis, in ms of room from its start. A fold takes `folded_ms`.
export class Axis {
  /** @param {TimeAxis} axis */
  constructor({ start_ms, end_ms, folds, folded_ms }) {
    this.start_ms = start_ms;
    this.end_ms = end_ms;
    this.folds = folds;
    this.folded_ms = folded_ms;
    this.length = this.place(end_ms);
  }
  /** @param {number} ms @returns {number} */
  place(ms) {
    let place = clamp(ms, this.start_ms, this.end_ms) - this.start_ms;
    for (const [from, to] of this.folds) {
      if (ms <= from) break;
      const idle = Math.min(ms, to) - from;
      place -= idle * (1 - this.folded_ms / (to - from));
    }
    return place;
  }
  /** @param {number} place */
  time(place) {
    let ms = this.start_ms + clamp(place, 0, this.length);
    for (const [from, to] of this.folds) {
      if (ms <= from) break;
      ms = Math.min(from + (ms - from) * ((to - from) / this.folded_ms), ms + (to - from) - this.folded_ms);
    }
    return Math.round(Math.min(ms, this.end_ms));
  }
}

/**
 * Of marks that are near each other the most important one is shown, and stands for the others.
 * @typedef {{ x: number, marks: [Mark, ...Mark[]] }} Group
 * @param {Mark[]} marks @param {(mark: Mark) => number} x
 */
export function merged(marks, x) {
  /** @type {Group[]} */
  const groups = [];
  for (const mark of [...marks].sort((a, b) => a.rank - b.rank || a.order - b.order)) {
    const at = x(mark), near = groups.find((group) => Math.abs(group.x - at) < NEAR);
    if (near) near.marks.push(mark);
    else groups.push({ x: at, marks: [mark] });
  }
  return groups.sort((a, b) => a.x - b.x);
}

export class Timeline {
  /** @param {Element} root @param {Look} look @param {Send} send */
  constructor(root, look, send) {
    this.look = look;
    this.send = send;
    /** @type {{ axis: Axis, snap: Snapshot, total: number } | null} */
    this.shown = null;
    this.scrubbing = false;
    const host = add(root, "div", { class: "sq-time" });
    this.range = add(host, "input", { type: "range", min: 0, step: 1, "aria-label": "time in the journal" });
    /** @type {Keyed<[number, number], HTMLElement>} */
    this.folds = new Keyed(add(host, "div", { class: "sq-folds" }), (parent) => add(parent, "span"));
    /** @type {Keyed<Group, HTMLElement>} */
    this.marks = new Keyed(add(host, "div", { class: "sq-marks" }), (parent) => {
      const mark = add(parent, "button", { type: "button", tabindex: -1 });
      add(mark, "span");
      return mark;
    });
    this.range.addEventListener("input", () => this.scrub());
    this.range.addEventListener("change", () => { this.scrubbing = false; });
  }
  scrub() {
    if (!this.shown) return;
    this.scrubbing = true;
    this.send("seek_time", this.shown.axis.time(Number(this.range.value)));
  }
  /** @param {TimeAxis} trait @param {Snapshot} snap @param {number} total @param {number} width */
  take(trait, snap, total, width) {
    const axis = new Axis(trait), room = Math.max(width - 2 * EDGE, 1);
    /** @param {number} ms */
    const share = (ms) => axis.place(ms) / Math.max(axis.length, 1);
    this.shown = { axis, snap, total };
    put(this.range, { max: Math.max(axis.length, 1) });
    this.folds.show(axis.folds, ([from]) => from, (node, [from, to]) => {
      put(node, { title: `${clockText(to - from)} without an event, folded` });
      node.style.setProperty("--sq-at", String((share(from) + share(to)) / 2));
    });
    let free = 0; // where the last shown label ends: of labels that would overlap, the later are left to their tooltips
    this.marks.show(merged(snap.marks, (mark) => share(mark.time_ms) * room), ({ marks: [first] }) => `${first.order} ${first.kind}`, (node, { x, marks }) => {
      const [first] = marks, more = marks.length > 1 ? ` +${marks.length - 1}` : "", label = first.text + more;
      const half = label.length * 3 + 6, shown = x - half > free && x + half < width;
      if (shown) free = x + half;
      setText(node.children[0], shown ? label : "");
      const title = marks.map(({ order, text }) => `${text}, event ${order}`).join("\n");
      put(node, { title, "aria-label": `go to event ${first.order}: ${first.text}` });
      node.style.setProperty("--sq-at", String(x / room));
      node.style.setProperty("--sq-mark", paint(this.look.marks[first.kind] ?? "soft"));
      node.onclick = () => this.send("seek_event", first.order);
    });
  }
  /** The thumb runs with the shown time. @param {number} now */
  run(now) {
    const { range, shown } = this;
    if (!shown) return;
    const { axis, snap, total } = shown;
    if (!this.scrubbing) range.value = String(Math.round(axis.place(now)));
    const text = `${clockText(now - axis.start_ms)} of ${clockText(axis.end_ms - axis.start_ms)}, event ${snap.order} of ${total}`;
    put(range, { "aria-valuetext": text });
    range.style.setProperty("--sq-done", String(axis.length ? Number(range.value) / axis.length : 0));
  }
}
