// Positions of offsets on the screen: the visible range, how it follows the window, how it moves smoothly, and how a
// pointer pans and zooms it.

/** @import { Sizes, Snapshot } from "./types.d.ts" */

import { clamp, ease } from "./draw.js";

const MOTION_MS = 200;
const CLICK = 4; // a pointer that moves less than this has clicked, px

/**
 * A visible range, and the positions that move with it.
 * @typedef {{ first: number, pitch: number, spso: number, window_end: number, log_start: number, log_end: number }} Range
 */

/** @type {Range} */
const NOWHERE = { first: 0, pitch: 0, spso: 0, window_end: 0, log_start: 0, log_end: 0 };

// The visible range. `goal` is its target, `now` the range that is drawn; positions of window and log move with it.
export class Camera {
  /** @param {Sizes} sizes */
  constructor(sizes) {
    this.sizes = sizes;
    this.width = 0;
    this.auto = true;
    this.placed = false; // false until the first snapshot
    this.goal = this.now = this.from = NOWHERE;
    this.start = 0;
  }
  /** @param {number} offset */
  x(offset) { return (offset - this.now.first) * this.now.pitch; }
  /** @param {number} x */
  offset(x) { return this.now.first + x / this.now.pitch; }
  get cells() { return this.now.pitch >= this.sizes.pitch_cells; }
  // The width for the window between the gutters, which hold the lanes' names and times.
  get narrow() { return this.width < this.sizes.narrow; }
  get left() { return this.narrow ? this.sizes.gutter_left_narrow : this.sizes.gutter_left; }
  get right() { return this.width - (this.narrow ? this.sizes.gutter_right_narrow : this.sizes.gutter_right); }
  get room() { return Math.max(this.right - this.left, 1); }

  // The largest step at which the window fits. One step below it is kept: small changes of the window do not zoom.
  /** @param {number} count */
  fitting(count) {
    let pitch = this.sizes.pitch;
    while (pitch * (count + 1) > this.room) pitch *= this.sizes.pitch_step;
    const kept = this.goal.pitch;
    return kept <= pitch && kept > pitch * this.sizes.pitch_step * 0.99 ? kept : pitch;
  }
  // Follow the window: stay while it is in view, slide when it leaves.
  /** @param {Pick<Snapshot, "spso" | "window_end" | "log_start" | "log_end">} places */
  follow({ spso, window_end, log_start, log_end }, width = this.width) {
    this.width = width;
    const goal = { ...this.goal, spso, window_end, log_start, log_end };
    const pitch = this.auto || !this.placed ? this.fitting(window_end - spso) : goal.pitch;
    const left = goal.first + this.left / pitch, right = goal.first + this.right / pitch;
    const lost = this.auto ? spso < left || window_end > right : spso >= goal.first + this.width / pitch || window_end <= goal.first;
    if (pitch !== goal.pitch || lost) Object.assign(goal, { pitch, first: this.beginning(spso, pitch) });
    this.glide(goal);
  }
  // The first visible offset if the window begins at the gutter; with cells, on the edge of one.
  /** @param {number} spso @param {number} pitch */
  beginning(spso, pitch) {
    const columns = this.left / pitch;
    return spso - (pitch >= this.sizes.pitch_cells ? Math.ceil(columns) : columns);
  }
  fit() {
    if (!this.placed) return;
    this.auto = true;
    this.goal.pitch = 0;
    this.follow(this.goal);
  }
  /** @param {Range} goal */
  glide(goal) {
    this.goal = goal;
    this.from = this.placed ? this.now : goal;
    if (!this.placed) this.now = { ...goal };
    this.placed = true;
    this.start = performance.now();
  }
  /** @param {number} factor */
  zoom(factor, x = this.room / 2 + this.left) {
    if (!this.placed) return;
    const pitch = clamp(this.goal.pitch * factor, 0.002, this.sizes.pitch * 1.6), first = this.goal.first + x / this.goal.pitch - x / pitch;
    this.auto = false;
    this.glide({ ...this.goal, pitch, first });
  }
  /** @param {number} dx */
  pan(dx) {
    if (!this.placed) return;
    this.auto = false;
    this.goal.first -= dx / this.now.pitch;
    this.now.first = this.goal.first;
    this.from = { ...this.now };
  }
  // One frame of the motion; true until it has ended. A snapshot that moves nothing begins none.
  /** @param {number} time @param {boolean} still */
  move(time, still) {
    const t = still ? 1 : clamp((time - this.start) / MOTION_MS, 0, 1), part = ease(t);
    let moving = false;
    for (const name of /** @type {(keyof Range)[]} */ (Object.keys(this.goal))) {
      this.now[name] = t === 1 ? this.goal[name] : this.from[name] + (this.goal[name] - this.from[name]) * part;
      moving ||= this.now[name] !== this.goal[name];
    }
    return moving;
  }
}

/**
 * Let a pointer steer: a drag pans, as a wheel sideways does, and ctrl and a wheel zoom.
 * @param {Camera} camera @param {HTMLElement} plot
 * @param {{ moved: () => void, dragged: () => void, clicked: (event: PointerEvent) => void, hovered: (event: PointerEvent) => void }} then
 */
export function steer(camera, plot, { moved, dragged, clicked, hovered }) {
  /** @param {MouseEvent} event */
  const at = (event) => event.clientX - plot.getBoundingClientRect().left;
  /** @type {number | null} */
  let held = null, drags = false;
  const drop = () => { held = null; };
  plot.addEventListener("pointerdown", (event) => {
    held = at(event);
    drags = false;
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (held == null) { hovered(event); return; }
    const x = at(event);
    if (Math.abs(x - held) < (drags ? 0.5 : CLICK)) return;
    drags = true;
    camera.pan(x - held);
    held = x;
    dragged();
  });
  plot.addEventListener("pointerup", (event) => {
    if (held != null && !drags) clicked(event);
    drop();
  });
  plot.addEventListener("pointercancel", drop);
  plot.addEventListener("wheel", (event) => {
    const zooming = event.ctrlKey || event.metaKey, sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!zooming && !event.shiftKey && Math.abs(sideways) <= Math.abs(event.deltaY)) return; // the page scrolls
    event.preventDefault();
    if (zooming) camera.zoom(Math.exp(-event.deltaY / 300), at(event));
    else camera.pan(-sideways);
    moved();
  }, { passive: false });
}

/** Let a pointer pan to a place in a picture of the whole window. @param {Camera} camera @param {HTMLElement} overview @param {() => void} moved */
export function steerFrom(camera, overview, moved) {
  /** @param {PointerEvent} event */
  const go = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const { spso, window_end } = camera.goal;
    camera.pan(camera.width / 2 - camera.x(spso + (event.offsetX / overview.clientWidth) * (window_end - spso)));
    moved();
  };
  overview.addEventListener("pointerdown", go);
  overview.addEventListener("pointermove", go);
}
