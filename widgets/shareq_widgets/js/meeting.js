// Views of one page that show one moment draw a new one in the same frame. Python sends it to one view after the other
// (`Moment.mark` in shareq_widgets/moment.py): a view waits until all of them have it.

/** @import { Traits } from "./types.d.ts" */

const LONGEST_MS = 1000; // what never comes, such as from a kernel that has ended, is not awaited any longer
const PAGE = Symbol.for("shareq.meetings"); // each kind of view is a bundle with a copy of this module

/** A view that is on the screen, or not, and the mark of the moment that it has received. @typedef {{ awaited: boolean, received: Traits["moment"] }} Guest */

/** @type {Map<string, Set<Guest>>} */
const meetings = (/** @type {any} */ (globalThis)[PAGE] ??= new Map());

export class Seat {
  /** @param {Guest} guest */
  constructor(guest) {
    this.guest = guest;
    this.since = 0;
    this.key = guest.received?.[0] ?? ""; // a saved page has none: its models are in the page
    this.others = meetings.get(this.key) ?? new Set();
    if (this.key) meetings.set(this.key, this.others.add(guest));
  }
  leave() {
    this.others.delete(this.guest);
    if (!this.others.size) meetings.delete(this.key);
  }
  /** True if another view does not have the moment yet. @param {number} time */
  waits(time) {
    const { guest, others } = this, number = guest.received?.[1];
    const late = [...others].some((one) => one !== guest && one.awaited && one.received?.[1] !== number);
    this.since = late ? this.since || time : 0;
    return late && time - this.since < LONGEST_MS;
  }
}
