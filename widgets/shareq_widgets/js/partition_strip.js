// The partition strip in the browser: it draws snapshots and sends commands, and decides nothing about records.
// Python responds to every message with {next_ms}: time until the next tick, or null. So one tick at most is under way.

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
const KEYS = {
  ArrowLeft: "back", ArrowRight: "step", " ": "play", Home: "first", End: "last", "+": "in", "=": "in", "-": "out", f: "fit", l: "live", i: "internals", r: "run_on",
};
const DRAWN = ["snapshot", "total", "clock", "words", "theme", "speed", "playing", "live", "axis", "internals", "running_on", "drivable"]; // a change of these is drawn
let instances = 0;

// The elements, made once; content is filled in later. Suppressing the notebook's shortcuts keeps the strip's keys.
function build(host, look, id) {
  const root = add(host, "div", { class: "sq-strip", tabindex: 0, role: "group", "data-lm-suppress-shortcuts": "true" });
  const head = add(root, "div", { class: "sq-head" }), page = { root, title: add(head, "b"), where: add(head, "span", { class: "sq-soft" }) };
  page.chips = new Keyed(add(head, "div", { class: "sq-chips" }), (parent) => {
    const chip = add(parent, "span");
    for (const tag of ["span", "b", "span"]) add(chip, tag);
    return chip;
  });
  const plot = page.plot = add(root, "div", { class: "sq-plot" });
  page.ground = add(plot, "canvas", { "aria-hidden": "true" });
  page.lanes = add(plot, "canvas", { "aria-hidden": "true", style: `top:${look.sizes.lane_top}px` });
  page.svg = add(plot, "svg", { role: "img" });
  add(page.svg, "defs").innerHTML = patternMarkup(id);
  for (const layer of ["places", "cells", "names", "flows"]) page[layer] = add(page.svg, "g");
  page.tip = add(plot, "div", { class: "sq-tip", hidden: true });
  page.overview = add(root, "canvas", { class: "sq-overview", title: "the whole window: click or drag to go there", hidden: true });
  page.time = add(root, "div");
  buildBar(root, page);
  page.legend = add(root, "div", { class: "sq-legend sq-soft" });
  return page;
}

function buildBar(root, page) {
  const bar = add(root, "div", { class: "sq-bar" }), button = (parent, [name, text, title]) => add(parent, "button", { type: "button", "data-do": name, title }, text);
  for (const spec of BUTTONS) page[spec[0]] = button(bar, spec);
  page.speed = add(bar, "select", { title: "speed", "aria-label": "speed" });
  for (const speed of SPEEDS) add(page.speed, "option", { value: speed }, `${speed}×`);
  page.internals = button(bar, ["internals", "internals", "step and play by single events (I)"]);
  page.sentence = add(bar, "output", { class: "sq-sentence" });
  for (const tag of ["span", "b", "span"]) add(page.sentence, tag);
  const zoom = add(bar, "span", { class: "sq-zoom" });
  for (const spec of ZOOMS) button(zoom, spec);
}

// JupyterLab and VS Code set their theme on the body; elsewhere the system's preference counts.
function themeOf(wish) {
  if (wish !== "auto") return wish;
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight !== undefined) return jpThemeLight === "true" ? "light" : "dark";
  if (vscodeThemeKind !== undefined) return vscodeThemeKind.includes("light") ? "light" : "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export class Strip {
  constructor(model, host) {
    Object.assign(this, { model, palette: model.get("palette"), look: model.get("look") });
    Object.assign(this, { clock: { rate: 0 }, anchor: { ms: 0, at: 0 }, underway: 0, wanted: null, dirty: true, stopped: new AbortController() });
    this.camera = new Camera(this.look.sizes);
    const id = `sq${++instances}`;
    this.page = build(host, this.look, id);
    this.scene = new Scene(this.page, this.look, this.camera, id);
    this.timeline = new Timeline(this.page.time, this.look, (name, value) => this.send(name, value));
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.listen();
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
    this.onChange = () => { this.dirty = true; this.wake(); };
    this.onState = () => { this.onChange(); this.tick(); };
    this.onAnswer = (answer) => this.answered(answer);
    for (const name of DRAWN) model.on(`change:${name}`, this.onChange);
    for (const name of ["playing", "live"]) model.on(`change:${name}`, this.onState);
    model.on("msg:custom", this.onAnswer);
    page.root.addEventListener("click", (event) => this.press(event.target.closest("[data-do]")?.dataset.do));
    page.root.addEventListener("keydown", (event) => this.key(event));
    page.speed.addEventListener("change", () => this.send("speed", Number(page.speed.value)));
    page.time.addEventListener("change", this.onChange);
    document.addEventListener("visibilitychange", this.onState, { signal });
    system.addEventListener("change", this.onChange, { signal });
    this.calm.addEventListener("change", () => this.still(), { signal });
    this.watches = [
      [new ResizeObserver(this.onChange), page.plot],
      [new IntersectionObserver((seen) => { this.seen = seen.at(-1).isIntersecting; this.onState(); }), page.root],
      [new MutationObserver(this.onChange), document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] }],
    ];
    for (const [watch, ...what] of this.watches) watch.observe(...what);
  }
  close() {
    this.stopped.abort();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.raf);
    for (const [watch] of this.watches) watch.disconnect();
    for (const name of DRAWN) this.model.off(`change:${name}`, this.onChange);
    for (const name of ["playing", "live"]) this.model.off(`change:${name}`, this.onState);
    this.model.off("msg:custom", this.onAnswer);
  }
  get visible() { return this.seen && document.visibilityState === "visible"; }

  // Of several seeks only the newest waits: a slow kernel gets no queue of them.
  send(name, value = null) {
    if (name.startsWith("seek") && this.underway) { this.wanted = [name, value]; return; }
    this.underway++;
    try {
      this.model.send({ do: name, value });
    } catch { /* the kernel is gone: the picture stays as it is, and nothing is awaited any more */ }
  }
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
  press(name) {
    const { model, camera } = this, zooms = { in: 1.25, out: 0.8 };
    if (name in zooms) camera.zoom(zooms[name]);
    else if (name === "fit") camera.fit(this.snap);
    else if (name === "play") this.send(model.get("playing") ? "pause" : "play");
    else if (name === "live" || name === "internals") this.send(name, !model.get(name));
    else if (name === "run_on") { if (model.get("drivable")) this.send(model.get("running_on") ? "pause" : "run_on"); }
    else if (name) this.send(name);
    this.wake(true);
  }
  key(event) {
    const name = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key], { tagName } = event.target;
    const native = tagName === "SELECT" || (event.key === " " && tagName === "BUTTON"); // these elements use the key themselves
    if (!name || native || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.press(name);
  }

  // ---- pointer: drag to pan, ctrl + wheel to zoom, hover for the tooltip

  point() {
    const { plot, overview, tip } = this.page, at = (event) => event.clientX - plot.getBoundingClientRect().left;
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
    const go = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const { spso, speo } = this.snap, { camera } = this;
      camera.pan(camera.width / 2 - camera.x(spso + (event.offsetX / overview.clientWidth) * (speo - spso)));
      this.wake(true);
    };
    for (const name of ["pointerdown", "pointermove"]) overview.addEventListener(name, go);
  }
  wheel(event, x) {
    const zooming = event.ctrlKey || event.metaKey, sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (!zooming && !event.shiftKey && Math.abs(sideways) <= Math.abs(event.deltaY)) return; // the page scrolls
    event.preventDefault();
    if (zooming) this.camera.zoom(Math.exp(-event.deltaY / 300), x);
    else this.camera.pan(-sideways);
    this.wake(true);
  }
  ask(event) {
    const { plot, tip } = this.page, box = plot.getBoundingClientRect(), { cell_top, cell_height } = this.look.sizes;
    const x = event.clientX - box.left, y = event.clientY - box.top, offset = this.snap ? Math.floor(this.camera.offset(x)) : -1;
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
  frame(time) {
    this.raf = 0;
    const { camera, scene } = this, redraw = this.moved || this.dirty || this.gliding;
    if (this.dirty) this.accept();
    if (!camera.goal) return;
    this.dirty = this.moved = false;
    this.gliding = camera.move(time, this.calm.matches);
    if (redraw) {
      put(this.page.root, { "data-mode": camera.cells ? "cells" : "runs" });
      scene.draw();
      this.legend();
    }
    this.time();
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
    Object.assign(this, { snap, clock: model.get("clock"), theme: themeOf(model.get("theme")) });
    const colours = this.palette[this.theme];
    for (const [name, colour] of Object.entries(colours)) page.root.style.setProperty(`--sq-${name}`, colour);
    page.root.dataset.theme = this.theme;
    if (!width) return; // not laid out yet: its size will come as a change
    if (snap !== before || width !== camera.width) camera.follow(snap, width);
    scene.take(snap, colours);
    this.words();
    this.timeline.take(model.get("axis"), snap, model.get("total"), width);
    if (before && snap.order > before.order && snap.step?.first === before.order + 1 && !this.calm.matches) scene.flow(before);
  }
  words() {
    const { model, page, snap } = this, { title, where, sentence } = model.get("words"), playing = model.get("playing");
    put(page.root, { "aria-label": `${title}, ${where}`, "data-spso": snap.spso, "data-speo": snap.speo, "data-order": snap.order });
    setText(page.title, title);
    setText(page.where, where);
    [...page.sentence.children].forEach((node, i) => setText(node, sentence[i]));
    put(page.sentence, { class: `sq-sentence${sentence[3] ? " sq-hot" : ""}`, "aria-live": playing ? "off" : "polite" });
    setText(page.play, playing ? "❚❚ pause" : "▶ play");
    put(page.play, { class: playing && "sq-on" });
    put(page.live, { class: model.get("live") && "sq-on", "aria-pressed": String(model.get("live")) });
    put(page.internals, { class: model.get("internals") && "sq-on", "aria-pressed": String(model.get("internals")) });
    put(page.run_on, { class: model.get("running_on") && "sq-on", "aria-pressed": String(model.get("running_on")), hidden: !model.get("drivable") });
    page.speed.value = String(model.get("speed"));
  }
  legend() {
    const { camera, look, page, palette, snap } = this, face = `${camera.cells} ${snap.observed} ${snap.runs.some((run) => run[STATE] === "archiving")}`;
    if (face !== this.legended) page.legend.innerHTML = legendMarkup(palette, look, snap, camera.cells);
    this.legended = face;
  }
  time() {
    const { page, scene, snap, model } = this, now = this.now();
    scene.drawTime(now);
    this.timeline.run(now);
    const chips = [...model.get("words").chips, [`t ${clockText(now - snap.origin_ms)}`, "", "", false]];
    page.chips.show(chips.map((chip, i) => ({ chip, i })), ({ i }) => i, (node, { chip }) => {
      [...node.children].forEach((part, i) => setText(part, chip[i]));
      put(node, { class: `sq-chip${chip[3] ? " sq-hot" : ""}` });
    });
  }
}

export default {
  render({ model, el }) {
    const strip = new Strip(model, el);
    return () => strip.close();
  },
};
