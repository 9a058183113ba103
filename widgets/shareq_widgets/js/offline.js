// A saved page: its views play a recording. The models stand in for those of Python, and answer the same commands.

/** @import { Clock, Context, Message, Model, OfflineView, Page, SavedCommand, Traits } from "./types.d.ts" */

import { COMMANDS, isCommand } from "./commands.js";
import { clamp } from "./draw.js";
import { Film } from "./film.js";
import picture from "./group_picture.js";
import strip from "./partition_strip.js";

const TICK_MIN_MS = 20;
/** @type {Clock} */
const STILL = { rate: 0, until_ms: null };
/** @type {Record<string, { initialize?: (context: { model: Model }) => void, render: (context: Context) => void }>} */
const KINDS = { partition_strip: strip, group_picture: picture };

/** The moment and the selection that all views of the page show. */
class Moment {
  constructor() {
    /** @type {OfflineModel[]} */
    this.models = [];
  }
  /** @param {OfflineModel} by */
  show(by) {
    for (const model of this.models) if (model !== by) model.follow(by.until, by.now_ms, by.get("live"), by.get("clock"));
  }
  /** @param {string} subject */
  select(subject) {
    for (const model of this.models) model.set("selection", subject);
  }
}

/** @implements {Model} */
class OfflineModel {
  /** @param {OfflineView} view @param {Page["pace"]} pace @param {Moment} moment */
  constructor({ traits, recording, events }, pace, moment) {
    this.film = new Film(recording);
    this.events = events; // true if each event was recorded, not only steps
    this.pace = pace;
    this.moment = moment;
    /** @type {Map<string, Set<(message: any, buffers: DataView[]) => void>>} */
    this.listeners = new Map();
    this.traits = /** @type {Traits} */ ({ ...traits, playing: false, internals: false, running_on: false, drivable: false, clock: STILL, keeps: [] });
    this.at = 0;
    this.until = 0;
    this.now_ms = 0;
    this.due = 0;
    this.message = "";
    /** @param {(value: any) => void} go @returns {(value: any) => void} */
    const moved = (go) => (value) => {
      this.pause();
      go(value);
      moment.show(this);
    };
    /** @type {Record<SavedCommand, (value: any) => void>} */
    this.commands = {
      first: moved(() => this.go(0)),
      back: moved(() => this.back()),
      play: () => this.play(),
      pause: moved(() => {}),
      step: moved(() => this.step(1, "This is the end of the recording.")),
      live: moved((live) => { if (live) this.go(this.film.last); else this.set("live", false); }),
      last: moved(() => this.go(this.film.last)),
      seek: moved((order) => this.go(this.film.atOrder(order))),
      seek_event: moved((order) => this.event(order)),
      seek_time: moved((ms) => this.go(this.film.atTime(ms), ms)),
      speed: (speed) => this.speed(speed),
      internals: (internals) => this.internals(internals),
      animate: (animate) => this.set("animate", animate),
      tick: () => this.tick(),
      select: (subject) => moment.select(subject),
    };
    moment.models.push(this);
    this.go(this.film.last);
  }

  // ---- the part of anywidget's model that the views use

  /** @template {keyof Traits} Name @param {Name} name @returns {Traits[Name]} */
  get(name) { return this.traits[name]; }
  /** @template {keyof Traits} Name @param {Name} name @param {Traits[Name]} value */
  set(name, value) {
    if (this.traits[name] === value) return;
    this.traits[name] = value;
    this.fire(`change:${name}`);
  }
  /** @param {string} event @param {(message: any, buffers: DataView[]) => void} callback */
  on(event, callback) { this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(callback)); }
  /** @param {string} event @param {(message: any, buffers: DataView[]) => void} callback */
  off(event, callback) { this.listeners.get(event)?.delete(callback); }
  /** @param {string} event @param {Message} [message] */
  fire(event, message) { for (const callback of [...this.listeners.get(event) ?? []]) callback(message, []); }
  /** @param {{ do: string, value: any }} content */
  send({ do: name, value }) {
    this.command(name, value);
    queueMicrotask(() => this.fire("msg:custom", { next_ms: this.get("playing") ? Math.max(this.due - performance.now(), TICK_MIN_MS) : null }));
  }

  // ---- commands, as in shareq_widgets/playback.py

  // One that needs a kernel has no effect here: the drawings are made.
  /** @param {string} name @param {any} value */
  command(name, value) {
    if (!isCommand(name)) this.showMessage(`unknown command: ${name}`);
    else if (!COMMANDS[name].kernel) this.commands[/** @type {SavedCommand} */ (name)](value);
  }
  back() {
    if (this.now_ms > this.film.times[this.at]) this.go(this.at);
    else this.step(-1, "This is the beginning of the recording.");
  }
  /** To the step that has the event at an order, or to the event. @param {number} order */
  event(order) {
    const before = order > 0 ? this.film.atOrder(order - 1) : -1;
    this.go(this.film.next(before, 1, this.get("internals")) ?? this.film.last);
  }
  /** @param {1 | -1} way @param {string} otherwise */
  step(way, otherwise) {
    const next = this.film.next(this.at, way, this.get("internals"));
    if (next == null) this.showMessage(otherwise);
    else this.go(next);
  }
  play() {
    if (this.film.next(this.at, 1, this.get("internals")) == null) this.go(0);
    this.set("playing", true);
    this.plan();
    this.moment.show(this);
  }
  pause() {
    this.set("playing", false);
    this.set("clock", STILL);
  }
  tick() {
    if (!this.get("playing") || performance.now() < this.due) return;
    const next = this.film.next(this.at, 1, this.get("internals"));
    if (next != null) this.go(next);
    this.plan();
    this.moment.show(this);
  }
  // Schedule the next step: the journal's time within readable bounds, divided by the speed.
  plan() {
    const next = this.film.next(this.at, 1, this.get("internals"));
    if (next == null) {
      this.pause();
      this.showMessage("This is the end of the recording.");
      return;
    }
    const gap = Math.max(this.film.times[next] - this.now_ms, 0), lasts = clamp(gap, ...this.pace) / this.get("speed");
    this.due = performance.now() + lasts;
    this.set("clock", { rate: gap / lasts, until_ms: this.film.times[next] });
  }
  /** @param {number} value */
  speed(value) {
    this.set("speed", value);
    if (this.get("playing")) this.plan();
  }
  /** @param {boolean} value */
  internals(value) {
    if (!this.events) {
      this.showMessage("This recording holds steps, not their single events.");
      return;
    }
    this.set("internals", value);
    this.show();
    if (this.get("playing")) this.plan();
  }

  // ---- showing

  /** @param {number} at @param {number} [now_ms] */
  go(at, now_ms = this.film.times[at]) {
    this.at = at;
    this.until = this.film.untils[at];
    this.now_ms = now_ms;
    this.message = "";
    this.set("live", at === this.film.last);
    this.show();
  }
  /**
   * Show the moment of another view, which may lie between two frames of this one.
   * @param {number} until @param {number} now_ms @param {boolean} live @param {Clock} clock
   */
  follow(until, now_ms, live, clock) {
    this.set("playing", false);
    this.go(this.film.atMoment(until), now_ms);
    this.set("live", live);
    this.set("clock", clock);
  }
  /** @param {string} message */
  showMessage(message) {
    this.message = message;
    this.show();
  }
  show() {
    const { snapshot, words, inner, drawing } = this.film.frame(this.at), after = this.now_ms - snapshot.now_ms;
    const [place, ...rest] = this.get("internals") && inner ? inner : words.sentence;
    const late = after >= 1000 ? `${(after / 1000).toFixed(1)} s after ` : after > 0 ? `${after} ms after ` : "";
    this.set("snapshot", after > 0 ? { ...snapshot, now_ms: this.now_ms } : snapshot);
    this.set("words", { ...words, sentence: this.message ? [place, this.message, "", false] : [late + place, ...rest] });
    if (drawing) this.set("drawing", drawing);
  }
}

/** @param {string} text base64 of gzipped JSON @returns {Promise<Page>} */
async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** @param {Element} recording @param {Element} place */
async function start(recording, place) {
  const { views, pace } = await inflate((recording.textContent ?? "").trim()), moment = new Moment();
  for (const view of views) {
    const el = document.createElement("div"), model = new OfflineModel(view, pace, moment);
    if (view.area) el.className = `sq-area-${view.area}`;
    place.append(el);
    KINDS[view.kind].initialize?.({ model });
    KINDS[view.kind].render({ model, el });
  }
}

const recording = document.querySelector("#shareq-recording"), place = document.querySelector("#shareq-views");
if (recording && place) start(recording, place);
