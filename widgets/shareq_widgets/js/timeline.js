// The timeline below the strip: journal time from left to right, idle stretches folded, marks merged by importance.

/** @import { Look, Mark, Send, Snapshot, TimeAxis } from "./types.d.ts" */

import { Keyed, add, clamp, clockText, paint, put, setText } from "./draw.js";

const NEAR = 9; // marks closer than this are shown as one, px
const EDGE = 7; // half of the thumb: the track's ends are there, px
const TICK = 80; // the least distance of two written times, px
const TICKS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5];

/** A time since the start as m:ss, with the decimals that the step needs. @param {number} ms @param {number} step */
const tickText = (ms, step) => {
  const seconds = ((ms % 60000) / 1000).toFixed(step % 1000 ? (step % 100 ? 3 : 1) : 0);
  return `${Math.floor(ms / 60000)}:${ms % 60000 < 10000 ? "0" : ""}${seconds}`;
};

// Times in ms since the epoch and their places on the axis, in ms of room from its start. A fold takes `folded_ms`.
/** True for all of the journal's time. @param {TimeAxis} axis */
export const isWhole = ({ start_ms, end_ms, first_ms, last_ms }) => start_ms === first_ms && end_ms === last_ms;

class Axis {
  /** @param {TimeAxis} axis */
  constructor({ start_ms, end_ms, origin_ms, folds, folded_ms }) {
    this.start_ms = start_ms;
    this.origin_ms = origin_ms;
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
  /** Round times outside of the folds, far enough from each other for their texts. @param {number} room */
  ticks(room) {
    const per_px = this.length / room, step = TICKS_MS.find((ms) => ms >= TICK * per_px) ?? TICKS_MS[TICKS_MS.length - 1];
    /** @type {{ ms: number, text: string }[]} */
    const found = [];
    let from = this.start_ms, last = -Infinity;
    for (const [to, next] of [...this.folds, [this.end_ms, this.end_ms]]) {
      for (let ms = Math.ceil((from - this.origin_ms) / step) * step; ms <= to - this.origin_ms; ms += step) {
        const place = this.place(this.origin_ms + ms);
        if (place - last >= TICK * per_px) {
          found.push({ ms: this.origin_ms + ms, text: tickText(ms, step) });
          last = place;
        }
      }
      from = next;
    }
    return found;
  }
}

/**
 * Of marks that are near each other the most important one is shown, and stands for the others.
 * @typedef {{ x: number, marks: [Mark, ...Mark[]] }} Group
 * @param {Mark[]} marks @param {(mark: Mark) => number} x
 */
function merged(marks, x) {
  /** @type {Group[]} */
  const groups = [];
  for (const mark of [...marks].sort((a, b) => a.rank - b.rank || a.order - b.order)) {
    const at = x(mark), near = groups.find((group) => Math.abs(group.x - at) < NEAR);
    if (near) near.marks.push(mark);
    else groups.push({ x: at, marks: [mark] });
  }
  return groups.sort((a, b) => a.x - b.x);
}

/**
 * The labels that have room, and how far they are moved from their marks to stay inside, by the first marks of their
 * groups: the most important ones first. One that would overlap another, or that says the same as its neighbour, is left
 * to its tooltip.
 * @param {Group[]} groups @param {number} width
 */
export function labelled(groups, width) {
  /** @type {{ x: number, half: number, first: Mark, label: string, move: number }[]} */
  const placed = [];
  for (const { x: at, marks } of [...groups].sort((a, b) => a.marks[0].rank - b.marks[0].rank || a.x - b.x)) {
    const [first] = marks, label = first.text + (marks.length > 1 ? ` +${marks.length - 1}` : ""), half = label.length * 3 + 6;
    const x = clamp(at, half, width - half), after = placed.findIndex((one) => one.x > x), place = after < 0 ? placed.length : after;
    const beside = [placed[place - 1], placed[place]].filter(Boolean);
    if (beside.every((one) => Math.abs(one.x - x) > one.half + half && one.first.text !== first.text)) {
      placed.splice(place, 0, { x, half, first, label, move: x - at });
    }
  }
  return new Map(placed.map(({ first, label, move }) => [first, { label, move }]));
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
    /** @type {Keyed<{ ms: number, text: string }, HTMLElement>} */
    this.ticks = new Keyed(add(host, "div", { class: "sq-ticks", "aria-hidden": "true" }), (parent) => add(parent, "span"));
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
    this.ticks.show(axis.ticks(room), ({ ms }) => ms, (node, { ms, text }) => {
      const x = EDGE + share(ms) * room, half = text.length * 3 + 2;
      setText(node, text);
      node.style.setProperty("--sq-at", String(share(ms)));
      node.style.setProperty("--sq-move", x < half ? "0" : x + half > width ? "-100%" : "-50%");
    });
    const inside = snap.marks.filter(({ time_ms }) => time_ms >= axis.start_ms && time_ms <= axis.end_ms);
    const groups = merged(inside, (mark) => share(mark.time_ms) * room), labels = labelled(groups, width);
    this.marks.show(groups, ({ marks: [first] }) => `${first.order} ${first.kind}`, (node, { x, marks }) => {
      const [first] = marks;
      const { label = "", move = 0 } = labels.get(first) ?? {};
      setText(node.children[0], label);
      node.style.setProperty("--sq-move", `${Math.round(move)}px`);
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
    const text = `${clockText(now - axis.origin_ms)} of ${clockText(axis.end_ms - axis.origin_ms)}, event ${snap.order} of ${total}`;
    put(range, { "aria-valuetext": text });
    range.style.setProperty("--sq-done", String(axis.length ? Number(range.value) / axis.length : 0));
  }
}
