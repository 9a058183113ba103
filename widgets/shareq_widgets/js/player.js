// Base of all views in the browser: the frame around a picture, the commands, the ticks and the displayed time.
// Python responds to every message with {next_ms}: time until the next tick, or null. So one tick at most is under way.

/** @import { Answer, Chip, Clock, Colours, CommandName, Look, Message, Model, PageCommand, Send, Snapshot, Traits } from "./types.d.ts" */

import { COMMANDS, KEYS, ROWS, isCommand } from "./commands.js";
import { Keyed, add, clamp, clockText, durationText, put, setText } from "./draw.js";
import { Seat } from "./meeting.js";
import { Shelf } from "./shelf.js";
import { explained } from "./terms.js";
import { Timeline, isWhole } from "./timeline.js";

const NEAREST_MS = 10; // the shortest time that a zoom shows
/** @type {(keyof Traits)[]} */
const DRAWN = ["snapshot", "moment", "total", "clock", "words", "theme", "speed", "playing", "live", "axis", "internals", "running_on", "drivable", "animate", "selection", "controls", "keeps"];
/** @type {(keyof Traits)[]} */
const STEERED = ["playing", "live"]; // a change of these may need a tick
let instances = 0;

/** @param {Event} event */
export const targetOf = (event) => /** @type {Element} */ (event.target);

/**
 * The elements around a picture, made once. Suppressing the notebook's shortcuts keeps the view's keys.
 * @param {Element} host @param {string} name @param {string} id @param {string} fills
 */
function build(host, name, id, fills) {
  const root = add(host, "div", { class: `sq-view sq-${name}`, tabindex: 0, role: "group", "data-lm-suppress-shortcuts": "true" });
  const head = add(root, "div", { class: "sq-head" }), title = add(head, "b"), where = add(head, "span", { class: "sq-soft" });
  /** @type {Keyed<Chip, HTMLElement>} */
  const chips = new Keyed(add(head, "div", { class: "sq-chips" }), (parent) => {
    const chip = add(parent, "span");
    for (const tag of ["span", "b", "span"]) add(chip, tag);
    return chip;
  });
  const plot = add(root, "div", { class: "sq-plot" }), svg = add(plot, "svg", { role: "img" });
  add(svg, "defs").innerHTML = fills.replaceAll('id="sq-', `id="${id}-`);
  const after = add(root, "div"), time = add(root, "div"), bar = buildBar(root);
  return { root, title, where, chips, plot, svg, after, time, ...bar };
}

/** The buttons and selects of the commands. @param {Element} root */
function buildBar(root) {
  const bar = add(root, "div", { class: "sq-bar" });
  /** @type {Record<string, HTMLButtonElement>} */
  const buttons = {};
  /** @type {Record<string, HTMLSelectElement>} */
  const selects = {};
  for (const [name, { choices, strip, text, title }] of ROWS) {
    if (text && !strip) buttons[name] = button(bar, name);
    if (choices) selects[name] = add(bar, "select", { title, "aria-label": title });
    for (const value of choices ?? []) add(selects[name], "option", { value }, `${value}×`);
  }
  const sentence = add(bar, "output", { class: "sq-sentence" });
  for (const tag of ["span", "b", "span"]) add(sentence, tag);
  return { bar, buttons, selects, sentence };
}

/** @param {Element} parent @param {CommandName} name */
export const button = (parent, name) => add(parent, "button", { type: "button", "data-do": name, title: COMMANDS[name].title }, COMMANDS[name].text);

/**
 * JupyterLab and VS Code set their theme on the body; elsewhere the system's preference counts.
 * @param {Traits["theme"]} wish
 */
function themeOf(wish) {
  if (wish !== "auto") return wish;
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight !== undefined) return jpThemeLight === "true" ? "light" : "dark";
  if (vscodeThemeKind !== undefined) return vscodeThemeKind.includes("light") ? "light" : "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// A subclass draws the picture: `take` applies a change, `draw` draws all of it, `drawTime` what time alone changes.
export class Player {
  /** @param {Model} model @param {Element} host @param {string} name @param {(keyof Traits)[]} more */
  constructor(model, host, name, more = []) {
    this.id = `sq${++instances}`;
    this.model = model;
    this.palette = model.get("palette");
    this.look = /** @type {Look} */ (model.get("look"));
    this.page = build(host, name, this.id, this.look.fills);
    this.timeline = new Timeline(this.page.time, this.look, (what, value) => this.send(what, value));
    this.shelf = new Shelf(this.page.root, this.page.buttons.save, (form) => {
      this.send("keep", { form, theme: this.page.root.dataset.theme, copy: this.copy });
      return this.underway;
    });
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.drawn = [...DRAWN, ...more]; // a change of these traits is drawn
    /** @type {Snapshot | null} */
    this.snap = null; // the drawn one
    this.held = { words: model.get("words"), axis: model.get("axis"), live: model.get("live") }; // those of the drawn moment
    /** @type {Colours} */
    this.colours = this.palette.light;
    /** @type {Clock} */
    this.clock = { rate: 0, until_ms: null };
    this.anchor = { ms: 0, at: 0 };
    /** @type {number | null} */
    this.arrived = null; // the number of the drawn moment
    this.reported = this.arrived;
    this.underway = 0; // commands without a response yet
    /** @type {Parameters<Send> | null} */
    this.wanted = null;
    this.seen = this.moved = this.gliding = false;
    /** @type {boolean | null} */
    this.shown = null; // what Python knows of its place on the screen
    this.copy = Math.random().toString(36).slice(2); // of the view, on this page or another
    this.dirty = true;
    this.width = 0;
    this.raf = 0;
    this.timer = 0;
    /** What a press does, if it does not send the command. @type {Record<PageCommand | "play" | "live" | "internals" | "run_on", () => void>} */
    const presses = {
      play: () => this.send(model.get("playing") ? "pause" : "play"),
      live: () => this.send("live", !model.get("live")),
      internals: () => this.send("internals", !model.get("internals")),
      run_on: () => { if (model.get("drivable")) this.send(model.get("running_on") ? "pause" : "run_on"); },
      nearer: () => this.nearer(),
      whole: () => { if (!isWhole(model.get("axis"))) this.send("zoom"); },
      save: () => this.shelf.toggle(),
    };
    /** @type {Partial<Record<CommandName, () => void>>} */
    this.presses = presses;
    this.stopped = new AbortController();
    this.seat = new Seat(this);
    this.onChange = () => { this.dirty = true; this.wake(); };
    this.onState = () => { this.onChange(); this.look_out(); this.tick(); };
    /** @param {Message} message @param {DataView[]} buffers */
    this.onAnswer = (message, buffers) => {
      if ("next_ms" in message) this.answered(message);
      else if ("kept" in message && message.kept.copy === this.copy) this.shelf.keep(message.kept, buffers);
    };
    const size = new ResizeObserver((entries) => { // a width that is read in a frame would lay out the page at once
      this.width = Math.round(entries[entries.length - 1].contentRect.width) || this.width;
      this.onChange();
    });
    const themes = new MutationObserver(this.onChange);
    const view = new IntersectionObserver((seen) => { this.seen = seen[seen.length - 1].isIntersecting; this.onState(); });
    this.watches = [size, view, themes];
    this.listen();
    size.observe(this.page.plot);
    view.observe(this.page.root);
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
    this.still();
    this.wake();
  }
  // With reduced motion nothing plays without a command.
  still() {
    if (this.calm.matches && this.model.get("animate")) this.send("animate", false);
  }

  // ---- to be overridden

  /** Apply the traits to the picture. @param {Snapshot | null} _before */
  take(_before) {}
  /** Draw all of it. */
  draw() {}
  /** Draw what the displayed time alone changes. @param {number} _now */
  drawTime(_now) {}
  /** One frame of a motion of the picture; true until it has ended. @param {number} _time */
  glide(_time) { return false; }

  // ---- messages received and sent

  listen() {
    const { model, page } = this, signal = this.stopped.signal, system = matchMedia("(prefers-color-scheme: dark)");
    for (const name of this.drawn) model.on(`change:${name}`, this.onChange);
    for (const name of STEERED) model.on(`change:${name}`, this.onState);
    model.on("msg:custom", this.onAnswer);
    page.root.addEventListener("click", (event) => this.press(targetOf(event).closest("[data-do]")?.getAttribute("data-do")));
    page.root.addEventListener("keydown", (event) => this.key(event));
    page.selects.speed.addEventListener("change", () => this.send("speed", Number(page.selects.speed.value)));
    page.time.addEventListener("change", this.onChange);
    document.addEventListener("visibilitychange", this.onState, { signal });
    system.addEventListener("change", this.onChange, { signal });
    this.calm.addEventListener("change", () => this.still(), { signal });
  }
  close() {
    this.stopped.abort();
    this.seat.leave();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.raf);
    for (const one of this.watches) one.disconnect();
    for (const name of this.drawn) this.model.off(`change:${name}`, this.onChange);
    for (const name of STEERED) this.model.off(`change:${name}`, this.onState);
    this.model.off("msg:custom", this.onAnswer);
    if (this.shown) setTimeout(() => this.report(false)); // later, the model of a view that Python has closed sends nothing
  }
  // What the other views of the moment ask, see meeting.js.
  get awaited() { return this.shown === true; }
  get received() { return this.model.get("moment"); }
  get visible() { return this.seen && document.visibilityState === "visible"; }

  // Python draws a view only while a copy of it is on a screen.
  look_out() {
    if (this.visible !== this.shown) this.report(this.visible);
  }
  /** @param {boolean} visible */
  report(visible) {
    this.shown = visible;
    this.send("visible", { visible, copy: this.copy });
  }

  // Of several seeks only the newest waits: a slow kernel gets no queue of them.
  /** @param {CommandName} name @param {unknown} value */
  send(name, value = null) {
    if (name.startsWith("seek") && this.underway) { this.wanted = [name, value]; return; }
    this.underway++;
    try {
      this.model.send({ do: name, value });
    } catch { /* the kernel is gone: the picture stays as it is, and nothing is awaited any more */ }
  }
  /** @param {Answer} answer */
  answered({ next_ms }) {
    this.underway = Math.max(this.underway - 1, 0);
    this.shelf.answered();
    clearTimeout(this.timer);
    if (this.wanted != null && !this.underway) {
      const wanted = this.wanted;
      this.wanted = null;
      this.send(...wanted);
    } else if (next_ms != null) this.timer = setTimeout(() => this.tick(), this.news ? 0 : next_ms);
  }
  // A tick has the number of the moment that the page shows: a text beside the views is not ahead of them.
  tick() {
    if (!this.visible || this.underway) return;
    this.reported = this.arrived;
    this.send("tick", this.arrived);
  }
  // True if a view that follows the end has drawn it, and Python does not know.
  get news() { return this.held.live && !this.clock.rate && this.arrived !== this.reported; }
  /** @param {string | null | undefined} name */
  press(name) {
    if (!isCommand(name)) return;
    const own = this.presses[name];
    if (!own) { this.send(name); return; } // the response is drawn
    own();
    this.wake(true);
  }
  // Show half of the time, with the moment at the same place of it.
  nearer() {
    const { start_ms, end_ms } = this.model.get("axis"), now = clamp(this.now(), start_ms, end_ms);
    const from = Math.round((start_ms + now) / 2), to = Math.round((now + end_ms) / 2);
    if (to - from >= NEAREST_MS) this.send("zoom", [from, to]);
  }
  /** @param {KeyboardEvent} event */
  key(event) {
    const name = KEYS.get(event.key.length === 1 ? event.key.toLowerCase() : event.key), { tagName } = targetOf(event);
    const native = tagName === "SELECT" || (event.key === " " && tagName === "BUTTON"); // these elements use the key themselves
    if (!name || native || event.ctrlKey || event.metaKey || event.altKey) return;
    if (COMMANDS[name].strip && !this.presses[name]) return;
    event.preventDefault();
    this.press(name);
  }

  // ---- one frame

  wake(moved = false) {
    this.moved ||= moved;
    this.raf ||= requestAnimationFrame((time) => this.frame(time));
  }
  /** @param {number} time */
  frame(time) {
    this.raf = 0;
    const waits = this.dirty && this.snap != null && this.seat.waits(time), accepts = this.dirty && !waits;
    const redraw = this.moved || accepts || this.gliding;
    if (accepts) this.accept(time);
    if (!this.snap || !this.width) return;
    this.dirty = waits;
    this.moved = false;
    this.gliding = this.glide(time);
    if (redraw) this.draw();
    if (redraw || this.clock.rate) this.time(this.snap, time);
    if (waits || this.gliding || (this.clock.rate && this.visible)) this.wake();
    if (this.news) this.tick();
  }

  // Journal time at a frame, or now: between snapshots it runs at the rate of the clock trait, up to its `until_ms`.
  now(at = performance.now()) {
    const { rate, until_ms } = this.clock, ms = this.anchor.ms + (at - this.anchor.at) * rate;
    return Math.max(this.anchor.ms, Math.min(ms, until_ms ?? Infinity));
  }

  // Apply a change: a snapshot, a size, a theme, the state of a button.
  /** @param {number} time */
  accept(time) {
    const { model, page } = this, snap = model.get("snapshot"), before = this.snap;
    this.anchor = { ms: snap === before ? this.now(time) : snap.now_ms, at: time };
    this.snap = snap;
    this.held = { words: model.get("words"), axis: model.get("axis"), live: model.get("live") };
    this.clock = model.get("clock");
    this.paint(themeOf(model.get("theme")), page.root.closest(".sq-slot"));
    if (!this.width) return; // not laid out yet: its size will come as a change
    this.words(snap);
    if (model.get("controls")) this.timeline.take(model.get("axis"), snap, model.get("total"), this.width);
    this.take(before);
    this.arrived = this.received?.[1] ?? null;
  }
  /** Set the colours of the view; the tabs of its slot have the same ones. @param {"light" | "dark"} theme @param {HTMLElement | null} slot */
  paint(theme, slot) {
    const { root } = this.page;
    if ([root, slot].every((one) => !one || one.dataset.theme === theme)) return;
    this.colours = this.palette[theme];
    for (const one of slot ? [root, slot] : [root]) {
      one.dataset.theme = theme;
      for (const [name, colour] of Object.entries(this.colours)) one.style.setProperty(`--sq-${name}`, colour);
    }
  }
  /** @param {Snapshot} snap */
  words(snap) {
    const { model, page } = this, { title, where, sentence } = model.get("words"), playing = model.get("playing");
    put(page.root, { "aria-label": `${title}, ${where}`, "data-order": snap.order, "data-now": snap.now_ms, "data-moment": model.get("moment")?.[1], "data-animate": String(model.get("animate")) });
    setText(page.title, title);
    setText(page.where, where);
    put(page.where, { title: explained(where) });
    [...page.sentence.children].forEach((node, i) => setText(node, String(sentence[i])));
    const words = sentence.slice(0, 3).join("");
    put(page.sentence, { class: `sq-sentence${sentence[3] ? " sq-hot" : ""}`, "aria-live": playing ? "off" : "polite", title: explained(words, words) });
    for (const [name, on] of /** @type {[CommandName, boolean][]} */ (Object.entries({ play: playing, live: model.get("live"), internals: model.get("internals"), run_on: model.get("running_on") }))) {
      const { on: stop, text = "" } = COMMANDS[name];
      setText(page.buttons[name], on && stop || text);
      put(page.buttons[name], { class: on && "sq-on", "aria-pressed": name === "play" ? null : String(on) });
    }
    page.buttons.run_on.hidden = !model.get("drivable");
    page.buttons.whole.hidden = isWhole(model.get("axis"));
    page.selects.speed.value = String(model.get("speed"));
    page.bar.hidden = page.time.hidden = !model.get("controls");
    this.shelf.take(model.get("keeps"));
  }
  /** How far the shown moment is from the end, if the view does not follow it. @param {number} now */
  past(now) {
    const { axis: { last_ms, present }, live } = this.held, ms = last_ms - now;
    if (live) return "";
    return present ? ms > 0 ? `${durationText(ms)} before ${present}` : "" : "in the past";
  }
  /** @param {Snapshot} snap @param {number} time */
  time(snap, time) {
    const { page, model } = this, now = this.now(time);
    this.drawTime(now);
    if (model.get("controls")) this.timeline.run(now);
    const past = this.past(now);
    /** @type {Chip[]} */
    const chips = [...this.held.words.chips, [`t ${clockText(now - snap.origin_ms)}${past && " · "}`, past, "", false]];
    page.chips.show(chips, (chip) => chips.indexOf(chip), (node, chip) => {
      [...node.children].forEach((part, i) => setText(part, String(chip[i])));
      put(node, { class: `sq-chip${chip[3] ? " sq-hot" : ""}`, title: explained(chip.slice(0, 3).join("")) || null });
    });
  }
}
