// A recording of one view: its state at each recorded moment, kept as changes (shareq_widgets/changes.py).

/** @import { Frame, Recording } from "./types.d.ts" */

import { apply } from "./changes.js";
import { upTo } from "./draw.js";

const EVERY = 100; // a frame that was passed is kept each so many frames

export class Film {
  /** @param {Recording} recording */
  constructor({ orders, times, untils, ends, changes }) {
    this.orders = orders;
    this.times = times;
    this.untils = untils;
    this.ends = ends;
    this.changes = changes;
    /** @type {Map<number, any>} */
    this.kept = new Map([[-1, null]]);
  }
  get last() { return this.orders.length - 1; }

  /** The state at a frame. @param {number} index @returns {Frame} */
  frame(index) {
    let at = index;
    while (!this.kept.has(at)) at--;
    let state = this.kept.get(at);
    while (at < index) {
      state = apply(state, this.changes[++at]);
      if (at % EVERY === 0) this.kept.set(at, state);
    }
    return state;
  }
  /** The last frame at or before a time; the first one if there is none. @param {number} time_ms */
  atTime(time_ms) { return Math.max(upTo(this.times, time_ms) - 1, 0); }
  /** The last frame at or before a moment of the journal. @param {number} until */
  atMoment(until) { return Math.max(upTo(this.untils, until) - 1, 0); }
  /** The last frame with at most so many events. @param {number} order */
  atOrder(order) { return Math.max(upTo(this.orders, order) - 1, 0); }
  /**
   * The frame that ends the next step in a direction, or the next frame; null if there is none.
   * @param {number} from @param {1 | -1} way @param {boolean} internals
   */
  next(from, way, internals) {
    for (let at = from + way; at >= 0 && at <= this.last; at += way) if (internals || this.ends[at]) return at;
    return null;
  }
}
