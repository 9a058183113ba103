// The partition strip in the browser: it draws snapshots and sends commands, and decides nothing about records.
// Python responds to every message with {next_ms}: time until the next tick, or null. So one tick at most is under way.

/** @import { Answer, Chip, Clock, Look, Model, Send, Snapshot, Traits } from "./types.d.ts" */

import { Camera } from "./camera.js";
import { STATE, Keyed, add, cellAt, clamp, clockText, describe, legendMarkup, patternMarkup, put, setText } from "./draw.js";
import { Scene } from "./scene.js";
import { Timeline } from "./timeline.js";

const SPEEDS = [0.25, 0.5, 1, 2, 5, 10];
const BUTTONS = [
  ["first", "|◀", "to the beginning (Home)"], ["back", "◀ step", "one step back (←)"], ["play", "▶ play", "play to the end of the recording, or pause (space)"],
  ["step", "step ▶", "one step on: all that one cause has changed (→)"], ["live", "● live", "follow the end (L)"],
  ["run_on", "run on ▶▶", "let the virtual cluster run on from the end: its clients, locks and timers (R)"],
];
const ZOOMS = [["out", "−", "zoom out (-)"], ["fit", "fit", "fit the window (F)"], ["in", "+", "zoom in (+)"]];
/** @type {Record<string, string>} */
const KEYS = {
  ArrowLeft: "back", ArrowRight: "step", " ": "play", Home: "first", End: "last", "+": "in", "=": "in", "-": "out", f: "fit", l: "live", i: "internals", r: "run_on",
};
/** @type {(keyof Traits)[]} */
const DRAWN = ["snapshot", "total", "clock", "words", "theme", "speed", "playing", "live", "axis", "internals", "running_on", "drivable", "animate"]; // a change of these is drawn
/** @type {(keyof Traits)[]} */
const STEERED = ["playing", "live"]; // a change of these may need a tick
let instances = 0;

/** @param {Event} event */
const targetOf = (event) => /** @type {Element} */ (event.target);

/**
 * The elements, made once; content is filled in later. Suppressing the notebook's shortcuts keeps the strip's keys.
 * @typedef {ReturnType<typeof build>} Page
 * @param {Element} host @param {Look} look @param {string} id
 */
function build(host, look, id) {
  const root = add(host, "div", { class: "sq-strip", tabindex: 0, role: "group", "data-lm-suppress-shortcuts": "true" });
  const head = add(root, "div", { class: "sq-head" }), title = add(head, "b"), where = add(head, "span", { class: "sq-soft" });
  /** @type {Keyed<Chip, HTMLElement>} */
  const chips = new Keyed(add(head, "div", { class: "sq-chips" }), (parent) => {
    const chip = add(parent, "span");
    for (const tag of ["span", "b", "span"]) add(chip, tag);
    return chip;
  });
  const plot = add(root, "div", { class: "sq-plot" });
  const ground = add(plot, "canvas", { "aria-hidden": "true" });
  const lanes = add(plot, "canvas", { "aria-hidden": "true", style: `top:${look.sizes.lane_top}px` });
  const svg = add(plot, "svg", { role: "img" });
  add(svg, "defs").innerHTML = patternMarkup(id);
  const [places, cells, names, flows] = [add(svg, "g"), add(svg, "g"), add(svg, "g"), add(svg, "g")];
  const tip = add(plot, "div", { class: "sq-tip", hidden: true });
  const overview = add(root, "canvas", { class: "sq-overview", title: "the whole window: click or drag to go there", hidden: true });
  const time = add(root, "div"), bar = buildBar(root), legend = add(root, "div", { class: "sq-legend sq-soft" });
  return { root, title, where, chips, plot, ground, lanes, svg, places, cells, names, flows, tip, overview, time, legend, ...bar };
}

/** @param {Element} root */
function buildBar(root) {
  const bar = add(root, "div", { class: "sq-bar" });
  /** @param {Element} parent @param {string[]} spec */
  const button = (parent, [name, text, title]) => add(parent, "button", { type: "button", "data-do": name, title }, text);
  const [, , play, , live, run_on] = BUTTONS.map((spec) => button(bar, spec));
  const speed = add(bar, "select", { title: "speed", "aria-label": "speed" });
  for (const value of SPEEDS) add(speed, "option", { value }, `${value}×`);
  const internals = button(bar, ["internals", "internals", "step and play by single events (I)"]);
  const sentence = add(bar, "output", { class: "sq-sentence" });
  for (const tag of ["span", "b", "span"]) add(sentence, tag);
  const zoom = add(bar, "span", { class: "sq-zoom" });
  for (const spec of ZOOMS) button(zoom, spec);
  return { play, live, run_on, speed, internals, sentence };
}

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

export class Strip {
  /** @param {Model} model @param {Element} host */
  constructor(model, host) {
    const id = `sq${++instances}`;
    this.model = model;
    this.palette = model.get("palette");
    this.look = model.get("look");
    this.camera = new Camera(this.look.sizes);
    this.page = build(host, this.look, id);
    this.scene = new Scene(this.page, this.look, this.camera, id, model.get("snapshot"), this.palette.light);
    this.timeline = new Timeline(this.page.time, this.look, (name, value) => this.send(name, value));
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    /** @type {Snapshot | null} */
    this.snap = null; // the drawn one
    /** @type {Clock} */
    this.clock = { rate: 0, until_ms: null };
    this.anchor = { ms: 0, at: 0 };
    this.underway = 0; // commands without a response yet
    /** @type {Parameters<Send> | null} */
    this.wanted = null;
    this.seen = this.moved = this.gliding = false;
    this.dirty = true;
    this.raf = 0;
    this.timer = 0;
    this.legended = "";
    this.stopped = new AbortController();
    this.onChange = () => { this.dirty = true; this.wake(); };
    this.onState = () => { this.onChange(); this.tick(); };
    /** @param {Answer} answer */
    this.onAnswer = (answer) => this.answered(answer);
    const size = new ResizeObserver(this.onChange), themes = new MutationObserver(this.onChange);
    const view = new IntersectionObserver((seen) => { this.seen = seen[seen.length - 1].isIntersecting; this.onState(); });
    this.watches = [size, view, themes];
    this.listen();
    size.observe(this.page.plot);
    view.observe(this.page.root);
    themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] });
    this.point();
    this.still();
    this.wake();
  }
  // For a reader who asked for reduced motion nothing is played unasked.
  still() {
    if (this.calm.matches && this.model.get("animate")) this.send("animate", false);
  }

  // ---- messages received and sent

  listen() {
    const { model, page } = this, signal = this.stopped.signal, system = matchMedia("(prefers-color-scheme: dark)");
    for (const name of DRAWN) model.on(`change:${name}`, this.onChange);
    for (const name of STEERED) model.on(`change:${name}`, this.onState);
    model.on("msg:custom", this.onAnswer);
    page.root.addEventListener("click", (event) => this.press(targetOf(event).closest("[data-do]")?.getAttribute("data-do")));
    page.root.addEventListener("keydown", (event) => this.key(event));
    page.speed.addEventListener("change", () => this.send("speed", Number(page.speed.value)));
    page.time.addEventListener("change", this.onChange);
    document.addEventListener("visibilitychange", this.onState, { signal });
    system.addEventListener("change", this.onChange, { signal });
    this.calm.addEventListener("change", () => this.still(), { signal });
  }
  close() {
    this.stopped.abort();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.raf);
    for (const one of this.watches) one.disconnect();
    for (const name of DRAWN) this.model.off(`change:${name}`, this.onChange);
    for (const name of STEERED) this.model.off(`change:${name}`, this.onState);
    this.model.off("msg:custom", this.onAnswer);
  }
  get visible() { return this.seen && document.visibilityState === "visible"; }

  // Of several seeks only the newest waits: a slow kernel gets no queue of them.
  /** @param {string} name @param {unknown} value */
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
    clearTimeout(this.timer);
    if (this.wanted !== null && !this.underway) {
      const wanted = this.wanted;
      this.wanted = null;
      this.send(...wanted);
    } else if (next_ms !== null) this.timer = setTimeout(() => this.tick(), next_ms);
  }
  tick() {
    if (this.visible && !this.underway) this.send("tick");
  }
  /** @param {string | null | undefined} name */
  press(name) {
    const { model, camera } = this;
    if (name === "in") camera.zoom(1.25);
    else if (name === "out") camera.zoom(0.8);
    else if (name === "fit") { if (this.snap) camera.fit(this.snap); }
    else if (name === "play") this.send(model.get("playing") ? "pause" : "play");
    else if (name === "live" || name === "internals") this.send(name, !model.get(name));
    else if (name === "run_on") { if (model.get("drivable")) this.send(model.get("running_on") ? "pause" : "run_on"); }
    else if (name) this.send(name);
    this.wake(true);
  }
  /** @param {KeyboardEvent} event */
  key(event) {
    const name = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key], { tagName } = targetOf(event);
    const native = tagName === "SELECT" || (event.key === " " && tagName === "BUTTON"); // these elements use the key themselves
    if (!name || native || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.press(name);
  }

  // ---- pointer: drag to pan, ctrl + wheel to zoom, hover for the tooltip

  point() {
    const { plot, overview, tip } = this.page;
    /** @param {PointerEvent | WheelEvent} event */
    const at = (event) => event.clientX - plot.getBoundingClientRect().left;
    /** @type {number | null} */
    let held = null;
    const drop = () => { held = null; };
    plot.addEventListener("pointerdown", (event) => {
      held = at(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      if (held === null) return this.ask(event);
      const x = at(event);
      if (x !== held) this.camera.pan(x - held);
      held = x;
      tip.hidden = true;
      return this.wake(true);
    });
    plot.addEventListener("pointerup", drop);
    plot.addEventListener("pointercancel", drop);
    plot.addEventListener("pointerleave", () => { tip.hidden = true; });
    plot.addEventListener("wheel", (event) => this.wheel(event, at(event)), { passive: false });
    /** @param {PointerEvent} event */
    const go = (event) => {
      if (!this.snap || (event.type === "pointermove" && !event.buttons)) return;
      const { spso, window_end } = this.snap, { camera } = this;
      camera.pan(camera.width / 2 - camera.x(spso + (event.offsetX / overview.clientWidth) * (window_end - spso)));
      this.wake(true);
    };
    overview.addEventListener("pointerdown", go);
    overview.addEventListener("pointermove", go);
  }
  /** @param {WheelEvent} event @param {number} x */
  wheel(event, x) {
    const zooming = event.ctrlKey || event.metaKey, sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!zooming && !event.shiftKey && Math.abs(sideways) <= Math.abs(event.deltaY)) return; // the page scrolls
    event.preventDefault();
    if (zooming) this.camera.zoom(Math.exp(-event.deltaY / 300), x);
    else this.camera.pan(-sideways);
    this.wake(true);
  }
  /** @param {PointerEvent} event */
  ask(event) {
    if (!this.snap || !this.camera.placed) return;
    const { plot, tip } = this.page, box = plot.getBoundingClientRect(), { cell_top, cell_height } = this.look.sizes;
    const x = event.clientX - box.left, y = event.clientY - box.top, offset = Math.floor(this.camera.offset(x));
    tip.hidden = offset < 0 || y < cell_top - 4 || y > cell_top + cell_height + 4;
    if (tip.hidden) return;
    setText(tip, describe(this.snap, cellAt(this.snap, offset), this.now()));
    tip.style.left = `${clamp(x + 12, 0, Math.max(box.width - tip.offsetWidth, 0))}px`;
    tip.style.top = `${cell_top + cell_height + 8}px`;
  }

  // ---- one frame

  wake(moved = false) {
    this.moved ||= moved;
    this.raf ||= requestAnimationFrame((time) => this.frame(time));
  }
  /** @param {number} time */
  frame(time) {
    this.raf = 0;
    const { camera, scene } = this, redraw = this.moved || this.dirty || this.gliding;
    if (this.dirty) this.accept();
    if (!this.snap || !camera.placed) return;
    this.dirty = this.moved = false;
    this.gliding = camera.move(time, this.calm.matches);
    if (redraw) {
      put(this.page.root, { "data-mode": camera.cells ? "cells" : "runs" });
      scene.draw();
      this.legend(this.snap);
    }
    this.time(this.snap);
    if (this.gliding || (this.clock.rate && this.visible)) this.wake();
  }

  // Journal time now: between snapshots it runs at the rate of the clock trait, up to its `until_ms`.
  now() {
    const { rate, until_ms } = this.clock, ms = this.anchor.ms + (performance.now() - this.anchor.at) * rate;
    return Math.max(this.anchor.ms, Math.min(ms, until_ms ?? Infinity));
  }

  // Apply a change: a snapshot, a size, a theme, the state of a button.
  accept() {
    const { model, page, camera, scene } = this, snap = model.get("snapshot"), before = this.snap, width = page.plot.clientWidth || camera.width;
    this.anchor = { ms: snap === before ? this.now() : snap.now_ms, at: performance.now() };
    this.snap = snap;
    this.clock = model.get("clock");
    const theme = themeOf(model.get("theme")), colours = this.palette[theme];
    for (const [name, colour] of Object.entries(colours)) page.root.style.setProperty(`--sq-${name}`, colour);
    page.root.dataset.theme = theme;
    if (!width) return; // not laid out yet: its size will come as a change
    if (snap !== before || width !== camera.width) camera.follow(snap, width);
    scene.take(snap, colours);
    this.words(snap);
    this.timeline.take(model.get("axis"), snap, model.get("total"), width);
    if (before && snap.order > before.order && snap.step?.first === before.order + 1 && !this.calm.matches) scene.flow(before);
  }
  /** @param {Snapshot} snap */
  words(snap) {
    const { model, page } = this, { title, where, sentence } = model.get("words"), playing = model.get("playing");
    put(page.root, { "aria-label": `${title}, ${where}`, "data-spso": snap.spso, "data-window-end": snap.window_end, "data-order": snap.order, "data-animate": String(model.get("animate")) });
    setText(page.title, title);
    setText(page.where, where);
    [...page.sentence.children].forEach((node, i) => setText(node, String(sentence[i])));
    put(page.sentence, { class: `sq-sentence${sentence[3] ? " sq-hot" : ""}`, "aria-live": playing ? "off" : "polite" });
    setText(page.play, playing ? "❚❚ pause" : "▶ play");
    put(page.play, { class: playing && "sq-on" });
    put(page.live, { class: model.get("live") && "sq-on", "aria-pressed": String(model.get("live")) });
    put(page.internals, { class: model.get("internals") && "sq-on", "aria-pressed": String(model.get("internals")) });
    put(page.run_on, { class: model.get("running_on") && "sq-on", "aria-pressed": String(model.get("running_on")), hidden: !model.get("drivable") });
    page.speed.value = String(model.get("speed"));
  }
  /** @param {Snapshot} snap */
  legend(snap) {
    const { camera, look, page, palette } = this, face = `${camera.cells} ${snap.observed} ${snap.runs.some((run) => run[STATE] === "archiving")}`;
    if (face !== this.legended) page.legend.innerHTML = legendMarkup(palette, look, snap, camera.cells);
    this.legended = face;
  }
  /** @param {Snapshot} snap */
  time(snap) {
    const { page, scene, model } = this, now = this.now();
    scene.drawTime(now);
    this.timeline.run(now);
    /** @type {Chip[]} */
    const chips = [...model.get("words").chips, [`t ${clockText(now - snap.origin_ms)}`, "", "", false]];
    page.chips.show(chips, (chip) => chips.indexOf(chip), (node, chip) => {
      [...node.children].forEach((part, i) => setText(part, String(chip[i])));
      put(node, { class: `sq-chip${chip[3] ? " sq-hot" : ""}` });
    });
  }
}

export default {
  /** @param {{ model: Model, el: HTMLElement }} context */
  render({ model, el }) {
    const strip = new Strip(model, el);
    return () => strip.close();
  },
};
