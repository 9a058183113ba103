// Where offsets lie on the screen: what is in view, how it follows the window, and how it gets there without a jump.

import { clamp, ease } from "./draw.js";

const MOTION_MS = 200;

// What is in view. `goal` is where it is going, `now` what is drawn; positions of the window and the log glide along.
export class Camera {
  constructor(sizes) {
    Object.assign(this, { sizes, width: 0, auto: true, goal: null, now: null, from: null, start: 0 });
  }
  x(offset) { return (offset - this.now.first) * this.now.pitch; }
  offset(x) { return this.now.first + x / this.now.pitch; }
  get cells() { return this.now.pitch >= this.sizes.pitch_cells; }
  // What is left for the window between the gutters, of which lanes have their names and times.
  get right() { return this.width - (this.width >= this.sizes.narrow ? this.sizes.gutter_right : this.sizes.gutter_narrow); }
  get room() { return Math.max(this.right - this.sizes.gutter_left, 1); }

  // The largest step at which the window fits. One step too small is kept: a window that breathes must not zoom.
  fitting(count) {
    let pitch = this.sizes.pitch;
    while (pitch * (count + 1) > this.room) pitch *= this.sizes.pitch_step;
    const kept = this.goal?.pitch;
    return kept <= pitch && kept > pitch * this.sizes.pitch_step * 0.99 ? kept : pitch;
  }
  // Follow the window: stay while it is in view, slide when it leaves.
  follow(snap, width = this.width) {
    this.width = width;
    const { spso, speo, log_start, log_end } = snap, goal = { ...this.goal, spso, speo, log_start, log_end };
    const pitch = this.auto || !this.goal ? this.fitting(speo - spso) : goal.pitch;
    const left = goal.first + this.sizes.gutter_left / pitch, right = goal.first + this.right / pitch;
    const lost = this.auto ? spso < left || speo > right : spso >= goal.first + this.width / pitch || speo <= goal.first;
    if (pitch !== goal.pitch || lost) Object.assign(goal, { pitch, first: this.beginning(spso, pitch) });
    this.glide(goal);
  }
  // Where the view begins so that the window stands at the gutter; on a cell's edge, where there are cells.
  beginning(spso, pitch) {
    const columns = this.sizes.gutter_left / pitch;
    return spso - (pitch >= this.sizes.pitch_cells ? Math.ceil(columns) : columns);
  }
  fit(snap) {
    this.auto = true;
    this.goal.pitch = 0;
    this.follow(snap);
  }
  glide(goal) {
    this.goal = goal;
    this.from = this.now ?? goal;
    this.now ??= { ...goal };
    this.start = performance.now();
  }
  zoom(factor, x = this.room / 2 + this.sizes.gutter_left) {
    const pitch = clamp(this.goal.pitch * factor, 0.002, this.sizes.pitch * 1.6), first = this.goal.first + x / this.goal.pitch - x / pitch;
    this.auto = false;
    this.glide({ ...this.goal, pitch, first });
  }
  pan(dx) {
    this.auto = false;
    this.goal.first -= dx / this.now.pitch;
    this.now.first = this.goal.first;
    this.from = { ...this.now };
  }
  // One frame of the glide; true while there is more to come.
  move(time, still) {
    const t = still ? 1 : clamp((time - this.start) / MOTION_MS, 0, 1), part = ease(t);
    for (const name of Object.keys(this.goal)) {
      this.now[name] = t === 1 ? this.goal[name] : this.from[name] + (this.goal[name] - this.from[name]) * part;
    }
    return t < 1;
  }
}
