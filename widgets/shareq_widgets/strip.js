// The partition strip in the browser: it draws snapshots and sends commands, and decides nothing about records.
// Python answers every message with {next_ms}: when the next tick is wanted, or null. So at most one tick is under way.
// Colours, sizes and shapes come from Python (traits `palette` and `look`); offsets are half-open ranges, as there.

const NS = "http://www.w3.org/2000/svg";
const MOTION_MS = 200;
const FLOWS = 12; // more ranges than this changing at once is weather, not cause and effect
const SPEEDS = [0.25, 0.5, 1, 2, 5, 10];
const OVERVIEW = 18;
let instances = 0;

// ---- small things ------------------------------------------------------------------------------------------------

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const ease = (t) => 1 - (1 - t) ** 3;
const pad = (n, digits) => String(n).padStart(digits, "0");
const span = (first, end) => (end - first > 1 ? `${first}–${end - 1}` : `${first}`);
const seconds = (ms) => `${(Math.max(ms, 0) / 1000).toFixed(1)} s`;
const escape = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const short = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

function clockText(ms) {
  const all = Math.max(Math.floor(ms), 0), hours = Math.floor(all / 3600000);
  const rest = `${pad(Math.floor(all / 60000) % 60, 2)}:${pad(Math.floor(all / 1000) % 60, 2)}.${pad(all % 1000, 3)}`;
  return hours ? `${hours}:${rest}` : rest;
}

function put(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

function add(parent, tag, attributes = {}, text = null) {
  const node = parent.namespaceURI === NS || tag === "svg" ? document.createElementNS(NS, tag) : document.createElement(tag);
  put(node, attributes);
  if (text !== null) node.textContent = text;
  parent.append(node);
  return node;
}

const say = (node, text) => node.textContent === text || (node.textContent = text);

// One node per key: what stays is moved, never made anew, so nothing blinks.
class Keyed {
  constructor(parent, make) {
    Object.assign(this, { parent, make, nodes: new Map() });
  }
  show(items, key, update) {
    const seen = new Set();
    for (const item of items) {
      const name = key(item);
      seen.add(name);
      if (!this.nodes.has(name)) this.nodes.set(name, this.make(this.parent, item));
      update(this.nodes.get(name), item);
    }
    for (const [name, node] of this.nodes) {
      if (seen.has(name)) continue;
      node.remove();
      this.nodes.delete(name);
    }
  }
}

// ---- reading a snapshot ------------------------------------------------------------------------------------------

const FIRST = 0, END = 1, STATE = 2, COUNT = 3, MEMBER = 4, DEADLINE = 5, WRITE = 6, TO = 7; // fields of a run

// Index of the first run that ends above the offset.
function runIndex(runs, offset) {
  let low = 0, high = runs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle][END] > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}

function runAt(runs, offset) {
  const run = runs[runIndex(runs, offset)];
  return run && run[FIRST] <= offset ? run : null;
}

// What one offset shows. `kind`: run, past, beyond (above the window) or dash (outside the log, or a natural gap).
function cellAt(snap, offset) {
  const inside = offset >= snap.spso && offset < snap.speo;
  const run = inside ? runAt(snap.runs, offset) : offset < snap.spso ? runAt(snap.past, offset) : null;
  if (run) return { offset, kind: inside ? "run" : "past", run };
  return { offset, kind: offset >= snap.speo && offset < snap.log_end ? "beyond" : "dash", run: null };
}

const memberOf = (snap, run) => snap.members.find((member) => member.id === run?.[MEMBER]);
const lastAttempt = (snap, run) => run[STATE] === "acquired" && run[COUNT] >= snap.delivery_count_limit;

function lastAttempts(snap) {
  return snap.runs.reduce((sum, run) => sum + (lastAttempt(snap, run) ? run[END] - run[FIRST] : 0), 0);
}

// What a person who points at an offset wants to know.
function describe(snap, cell, now) {
  const { offset, run } = cell;
  if (!run) {
    const place = offset < snap.log_start ? "below the log start" : offset >= snap.log_end ? "not written yet" :
      cell.kind === "beyond" ? "above the window, not fetched yet" : offset < snap.spso ? "done, below the SPSO" : "a gap: no record";
    return `offset ${offset}\n${place}`;
  }
  const holder = memberOf(snap, run), lines = [`offset ${offset}${run[END] - run[FIRST] > 1 ? `, in ${span(run[FIRST], run[END])}` : ""}`];
  lines.push(run[STATE] + (run[MEMBER] ? ` by ${holder ? `${holder.name} (${holder.letter})` : "an unknown member"}` : ""));
  lines.push(`delivery ${run[COUNT]} of ${snap.delivery_count_limit}${lastAttempt(snap, run) ? ", the last attempt" : ""}`);
  if (run[DEADLINE]) lines.push(`${seconds(run[DEADLINE] - now)} of lock left`);
  if (run[TO]) lines.push(`write ${run[WRITE]} under way: will be ${run[TO]}`);
  return lines.join("\n");
}

// ---- pictures of single things -----------------------------------------------------------------------------------

const paint = (name) => `var(--sq-${name})`;

// One cell as markup, its corner at 0,0. The picture in Python draws the same from the same shapes.
function cellMarkup(cell, snap, look, pitch, hatch) {
  const { sizes, shapes } = look, w = pitch - sizes.gap, h = sizes.cell_height, run = cell.run;
  const box = `<rect width="${w}" height="${h}" rx="6"`;
  if (cell.kind === "dash") return `<path d="M${w / 2 - 3} ${h / 2}h6" stroke="${paint("line")}" stroke-width="2"/>`;
  if (!run) return `${box} fill="none" stroke="${paint("line")}" stroke-width="1.2" stroke-dasharray="3 3"/>`;
  const shape = shapes[run[STATE]], pattern = shape.fill === "hatch" || shape.fill === "dots";
  const fill = pattern ? `url(#${hatch}-${shape.fill})` : shape.fill ? paint(shape.fill) : "none";
  const ring = `<rect x="-2" y="-2" width="${w + 4}" height="${h + 4}" rx="8" fill="none"`;
  return `${box} fill="${fill}" stroke="${paint(shape.stroke)}" stroke-width="${shape.width}"/>` +
    glyphMarkup(cell, snap, look, w) + countMarkup(run, snap.delivery_count_limit, look, pitch) +
    (lastAttempt(snap, run) ? `${ring} stroke="${paint("alarm")}" stroke-width="2.2"/>` : "") +
    (run[TO] ? `${ring} stroke="${paint("ink")}" stroke-width="1.4" stroke-dasharray="4 3"/>` : "");
}

// The state's shape. An acquired cell shows its holder or, dashed, what the write under way will make of it.
function glyphMarkup(cell, snap, { sizes, shapes }, w) {
  const run = cell.run, shape = shapes[run[TO] ?? run[STATE]], ink = paint(shapes[run[STATE]].ink);
  if (!shape.glyph) {
    const letter = memberOf(snap, run)?.letter ?? "?";
    return `<text class="sq-glyph" x="${w / 2}" y="${sizes.glyph + 5}" text-anchor="middle" style="fill:${ink}">${escape(letter)}</text>`;
  }
  const line = run[TO] ? 'stroke-width="1.7" stroke-dasharray="2.5 2"' : 'stroke-width="2.4"';
  return `<g transform="translate(${w / 2} ${sizes.glyph})"><path class="sq-glyph" d="${shape.glyph}" fill="none" stroke="${ink}" stroke-linecap="round" ${line}/></g>`;
}

// The delivery count as pips of the limit, or as a number where pips would not be legible.
function countMarkup(run, limit, { sizes, shapes }, pitch) {
  const w = pitch - sizes.gap, y = sizes.cell_height - 7, solid = shapes[run[STATE]].ink === "onfill";
  const ink = paint(solid ? "onfill" : "ink"), space = Math.min(5, (w - 8) / Math.max(limit - 1, 1));
  if (pitch < sizes.pitch_pips || space < 3) {
    return `<text x="${w / 2}" y="${y + 3}" text-anchor="middle" style="fill:${ink};font-size:10px">${run[COUNT]}</text>`;
  }
  const start = w / 2 - (space * (limit - 1)) / 2, r = Math.min(1.9, space * 0.4);
  const pip = (_, i) => `<circle cx="${start + i * space}" cy="${y}" r="${r}" ` +
    (i < run[COUNT] ? `fill="${ink}"/>` : `fill="none" stroke="${ink}" stroke-width=".6"/>`);
  return Array.from({ length: limit }, pip).join("");
}

function patternMarkup(id) {
  const ground = `<rect width="6" height="6" fill="${paint("archived")}" opacity=".28"/>`;
  const pattern = (name, extra, drawn) => `<pattern id="${id}-${name}" width="6" height="6" patternUnits="userSpaceOnUse" ${extra}>${ground}${drawn}</pattern>`;
  return pattern("hatch", 'patternTransform="rotate(45)"', `<path d="M0 0v6" stroke="${paint("archived")}" stroke-width="2.4"/>`) +
    pattern("dots", "", `<circle cx="3" cy="3" r="1.3" fill="${paint("archived")}"/>`);
}

// Blocks: what stands for a run where cells would be illegible. Height tells the state, so colour never stands alone.
// Runs that share a pixel column are drawn once, by the tallest: cost follows pixels, however many runs there are.
function drawBlocks(ctx, snap, x, box, colours, shapes, detail) {
  const last = runIndex(snap.runs, box.end);
  let filled = -Infinity, tallest = 0;
  for (let i = runIndex(snap.runs, box.first); i <= last && i < snap.runs.length; i++) {
    const run = snap.runs[i], shape = shapes[run[STATE]], left = x(run[FIRST]), right = x(run[END]);
    const width = Math.max(right - left - (right - left > 4 ? 1 : 0), 0.6), h = box.height * shape.block;
    const column = Math.floor(right * 1.5);
    if (column === filled && h <= tallest) continue;
    tallest = h;
    filled = column;
    drawBlock(ctx, run, shape, { left, top: box.top + box.height - h, width, height: h }, colours);
    if (detail) drawDetail(ctx, run, snap, shape, { left, width, ...box }, colours);
  }
}

function drawBlock(ctx, run, shape, at, colours) {
  ctx.fillStyle = colours[shape.stroke];
  if (shape.fill) {
    ctx.globalAlpha = shape.fill === "hatch" || shape.fill === "dots" ? 0.75 : 1;
    ctx.fillRect(at.left, at.top, at.width, at.height);
    ctx.globalAlpha = 1;
  } else { // hollow: a roof and a floor, and walls where there is room
    ctx.fillRect(at.left, at.top, at.width, 2);
    ctx.fillRect(at.left, at.top + at.height - 2, at.width, 2);
    if (at.width < 6) return;
    ctx.fillRect(at.left, at.top, 1.5, at.height);
    ctx.fillRect(at.left + at.width - 1.5, at.top, 1.5, at.height);
  }
}

// Marks on a block: last attempt (alarm roof), write under way (dashed roof), and glyph or letter if it is wide enough.
function drawDetail(ctx, run, snap, shape, at, colours) {
  if (lastAttempt(snap, run)) {
    ctx.fillStyle = colours.alarm;
    ctx.fillRect(at.left, at.top - 4, Math.max(at.width, 2), 3);
  }
  if (run[TO]) {
    ctx.strokeStyle = colours.ink;
    ctx.setLineDash([4, 3]);
    ctx.strokeRect(at.left + 0.5, at.top + 0.5, Math.max(at.width - 1, 1), at.height - 1);
    ctx.setLineDash([]);
  }
  if (at.width < 16 || shape.block < 0.5) return;
  const middle = at.left + at.width / 2, y = at.top + at.height * (shape.block < 1 ? 0.7 : 0.5);
  ctx.save();
  ctx.translate(middle, y);
  ctx.strokeStyle = ctx.fillStyle = colours[shape.ink];
  ctx.lineWidth = 2;
  if (shape.glyph) ctx.stroke(new Path2D(shape.glyph));
  else ctx.fillText(memberOf(snap, run)?.letter ?? "?", 0, 5);
  ctx.restore();
}

// ---- where offsets lie -------------------------------------------------------------------------------------------

// What is in view. `goal` is where it is going, `now` what is drawn; positions of the window and the log glide along.
class Camera {
  constructor(sizes) {
    Object.assign(this, { sizes, width: 0, auto: true, goal: null, now: null, from: null, start: 0 });
  }
  x(offset) { return (offset - this.now.first) * this.now.pitch; }
  offset(x) { return this.now.first + x / this.now.pitch; }
  get cells() { return this.now.pitch >= this.sizes.pitch_cells; }
  get right() { return this.width - (this.width >= this.sizes.narrow ? this.sizes.gutter_right : this.sizes.gutter_narrow); }
  get room() { return Math.max(this.right - this.sizes.gutter_left, 1); }

  // The largest step at which the window fits. One step too small is kept: a window that breathes must not zoom.
  fitting(count) {
    let pitch = this.sizes.pitch;
    while (pitch * Math.max(count, 1) > this.room) pitch *= this.sizes.pitch_step;
    const kept = this.goal?.pitch;
    return kept <= pitch && kept > pitch * this.sizes.pitch_step * 0.99 ? kept : pitch;
  }
  // Follow the window: stay while it is in view, slide when it leaves.
  follow(snap) {
    const { spso, speo, log_start, log_end } = snap, goal = { ...this.goal, spso, speo, log_start, log_end };
    const pitch = this.auto || !this.goal ? this.fitting(speo - spso) : goal.pitch;
    const left = goal.first + this.sizes.gutter_left / pitch, right = goal.first + this.right / pitch;
    const lost = this.auto ? spso < left || speo > right : spso >= goal.first + this.width / pitch || speo <= goal.first;
    if (pitch !== goal.pitch || lost) Object.assign(goal, { pitch, first: this.start_at(spso, pitch) });
    this.glide(goal);
  }
  start_at(spso, pitch) {
    const first = spso - this.sizes.gutter_left / pitch;
    return pitch >= this.sizes.pitch_cells ? Math.ceil(first) : first;
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

// ---- the page ----------------------------------------------------------------------------------------------------

const BUTTONS = [ // command, sign, title
  ["first", "|◀", "to the beginning (Home)"], ["back", "◀ step", "one event back (←)"], ["play", "▶ play", "play or pause (space)"],
  ["step", "step ▶", "one event on; runs a virtual cluster (→)"], ["live", "● live", "follow the end (L)"],
];
const ZOOMS = [["out", "−", "zoom out (-)"], ["fit", "fit", "fit the window (F)"], ["in", "+", "zoom in (+)"]];
const KEYS = {
  ArrowLeft: "back", ArrowRight: "step", " ": "play", Home: "first", End: "last", "+": "in", "=": "in", "-": "out", f: "fit", l: "live",
};

// The elements, once; everything that changes is filled in later. Suppressing the notebook's shortcuts keeps our keys ours.
function build(host, look, id) {
  const root = add(host, "div", { class: "sq-strip", tabindex: 0, role: "group", "data-lm-suppress-shortcuts": "true" });
  const head = add(root, "div", { class: "sq-head" }), parts = { root };
  parts.title = add(head, "b");
  parts.where = add(head, "span", { class: "sq-soft" });
  add(head, "span", { class: "sq-space" });
  parts.chips = new Keyed(head, (parent) => add(parent, "span", { class: "sq-chip" }));
  const plot = parts.plot = add(root, "div", { class: "sq-plot" });
  parts.ground = add(plot, "canvas", { "aria-hidden": "true" });
  parts.lanes = add(plot, "canvas", { "aria-hidden": "true", style: `top:${look.sizes.lane_top}px` });
  parts.svg = add(plot, "svg", { role: "img" });
  add(parts.svg, "defs").innerHTML = patternMarkup(id);
  for (const layer of ["places", "cells", "names", "flows"]) parts[layer] = add(parts.svg, "g");
  parts.tip = add(plot, "div", { class: "sq-tip", hidden: true });
  parts.overview = add(root, "canvas", { class: "sq-overview", title: "the whole window: click or drag to go there", hidden: true });
  const time = add(root, "div", { class: "sq-time" });
  parts.range = add(time, "input", { type: "range", min: 0, step: 1, "aria-label": "point in the journal" });
  parts.marks = new Keyed(add(time, "div", { class: "sq-marks" }), (parent) => {
    const mark = add(parent, "button", { type: "button", tabindex: -1 });
    add(mark, "span");
    return mark;
  });
  const bar = add(root, "div", { class: "sq-bar" });
  for (const [name, text, title] of BUTTONS) parts[name] = add(bar, "button", { type: "button", "data-do": name, title }, text);
  parts.speed = add(bar, "select", { title: "speed", "aria-label": "speed" });
  for (const speed of SPEEDS) add(parts.speed, "option", { value: speed }, `${speed}×`);
  parts.sentence = add(bar, "output", { class: "sq-sentence" });
  for (const name of ["count", "what", "why"]) parts[name] = add(parts.sentence, name === "what" ? "b" : "span");
  const zoom = add(bar, "span", { class: "sq-zoom" });
  for (const [name, text, title] of ZOOMS) add(zoom, "button", { type: "button", "data-do": name, title }, text);
  parts.legend = add(root, "div", { class: "sq-legend sq-soft" });
  return parts;
}

function legendMarkup(palette, look, snap, cells) {
  const names = palette.states.filter((state) => state !== "archiving" || snap.runs.some((run) => run[STATE] === state));
  const sign = (state) => {
    const { glyph, fill, stroke, ink } = look.shapes[state], tint = fill && ink === "onfill" ? fill : stroke;
    const drawn = glyph ? `<path d="${glyph}" transform="translate(8 8) scale(.85)" fill="none" stroke="${paint(tint)}" stroke-width="2.4" stroke-linecap="round"/>`
      : `<rect x="2" y="2" width="12" height="12" rx="3" fill="${paint(tint)}"/>`;
    return `<svg width="16" height="16" aria-hidden="true">${drawn}</svg>${escape(state)}${glyph ? "" : ", by its holder’s letter"}`;
  };
  const block = (state) => look.shapes[state].fill ? `${Math.round(look.shapes[state].block * 100)} %` : "hollow";
  const rest = cells ? ["dashed: state write under way", "●●○○○ deliveries of the limit"]
    : [`blocks by height: ${names.map((state) => `${state} ${block(state)}`).join(", ")}`, "zoom in for single records"];
  return [...names.map(sign), ...rest.map(escape), "bars: lock time left"].map((text) => `<span>${text}</span>`).join("");
}

// JupyterLab says its theme on the body, VS Code too; anywhere else the system's preference counts.
function themeOf(wish) {
  if (wish !== "auto") return wish;
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight !== undefined) return jpThemeLight === "true" ? "light" : "dark";
  if (vscodeThemeKind !== undefined) return vscodeThemeKind.includes("light") ? "light" : "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

// A canvas as large as asked, sharp on any screen, cleared.
function canvasOf(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    Object.assign(canvas, { width: w, height: h });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const ctx = canvas.getContext("2d");
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  return ctx;
}

export class Strip {
  constructor(model, host) {
    Object.assign(this, { model, palette: model.get("palette"), look: model.get("look"), id: `sq${++instances}` });
    Object.assign(this, { clock: { rate: 0 }, anchor: { ms: 0, at: 0 }, underway: 0, wanted: null, stopped: new AbortController() });
    this.camera = new Camera(this.look.sizes);
    this.page = build(host, this.look, this.id);
    this.cells = new Keyed(this.page.cells, (parent) => add(parent, "g", { class: "sq-cell" }));
    this.places = new Keyed(this.page.places, (parent, item) => add(parent, item.tag));
    this.names = new Keyed(this.page.names, (parent) => add(parent, "text"));
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.listen();
    this.dirty = true;
    this.wake();
  }

  // ---- talking to Python

  listen() {
    const { model, page } = this, signal = this.stopped.signal;
    this.onChange = () => { this.dirty = true; this.wake(); };
    this.onState = () => { this.onChange(); this.tick(); };
    this.onAnswer = (answer) => this.answered(answer);
    this.traits = ["snapshot", "total", "clock", "message", "error", "theme", "speed"].map((name) => `change:${name}`);
    for (const name of this.traits) model.on(name, this.onChange);
    for (const name of ["change:playing", "change:live"]) model.on(name, this.onState);
    model.on("msg:custom", this.onAnswer);
    page.root.addEventListener("click", (event) => this.press(event.target.closest("[data-do]")?.dataset.do));
    page.root.addEventListener("keydown", (event) => this.key(event));
    page.speed.addEventListener("change", () => this.send("speed", Number(page.speed.value)));
    page.range.addEventListener("input", () => { this.scrubbing = true; this.send("seek", Number(page.range.value)); });
    page.range.addEventListener("change", () => { this.scrubbing = false; this.onChange(); });
    this.point();
    this.watches = [
      [new ResizeObserver(this.onChange), page.plot],
      [new IntersectionObserver((seen) => { this.seen = seen.at(-1).isIntersecting; this.onState(); }), page.root],
      [new MutationObserver(this.onChange), document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"] }],
    ];
    for (const [watch, ...what] of this.watches) watch.observe(...what);
    document.addEventListener("visibilitychange", this.onState, { signal });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.onChange, { signal });
  }
  close() {
    this.stopped.abort();
    clearTimeout(this.timer);
    cancelAnimationFrame(this.raf);
    for (const [watch] of this.watches) watch.disconnect();
    for (const name of this.traits) this.model.off(name, this.onChange);
    for (const name of ["change:playing", "change:live"]) this.model.off(name, this.onState);
    this.model.off("msg:custom", this.onAnswer);
  }
  get visible() { return this.seen && document.visibilityState === "visible"; }

  // Of scrubs only the newest waits its turn; a slow kernel is never handed a queue of them.
  send(name, value = null) {
    if (name === "seek" && this.underway) { this.wanted = value; return; }
    this.underway++;
    this.model.send({ do: name, value });
  }
  answered({ next_ms }) {
    this.underway = Math.max(this.underway - 1, 0);
    clearTimeout(this.timer);
    if (this.wanted !== null && !this.underway) {
      const order = this.wanted;
      this.wanted = null;
      this.send("seek", order);
    } else if (next_ms !== null) this.timer = setTimeout(() => this.tick(), next_ms);
  }
  tick() {
    if (this.visible && !this.underway) this.send("tick");
  }
  press(name) {
    const { model, camera } = this, zooms = { in: 1.25, out: 0.8 };
    if (name in zooms) camera.zoom(zooms[name]);
    else if (name === "fit") { camera.auto = true; camera.follow(this.snap); }
    else if (name === "play") this.send(model.get("playing") ? "pause" : "play");
    else if (name === "live") this.send("live", !model.get("live"));
    else if (name) this.send(name);
    this.wake(true);
  }
  key(event) {
    const name = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const native = event.target.tagName === "SELECT" || (event.key === " " && event.target.tagName === "BUTTON");
    if (!name || native || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.press(name);
  }

  // ---- pointer: drag to pan, ctrl + wheel to zoom, hover to ask

  point() {
    const { plot, overview, tip } = this.page;
    const at = (event) => event.clientX - plot.getBoundingClientRect().left;
    let held = null;
    plot.addEventListener("pointerdown", (event) => {
      held = at(event);
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      if (held === null) return this.ask(event);
      this.camera.pan(at(event) - held);
      held = at(event);
      tip.hidden = true;
      return this.wake(true);
    });
    for (const name of ["pointerup", "pointercancel"]) plot.addEventListener(name, () => { held = null; });
    plot.addEventListener("pointerleave", () => { tip.hidden = true; });
    plot.addEventListener("wheel", (event) => {
      const sideways = event.shiftKey ? event.deltaY : event.deltaX, zooming = event.ctrlKey || event.metaKey;
      if (!zooming && Math.abs(sideways) <= (event.shiftKey ? 0 : Math.abs(event.deltaY))) return;
      event.preventDefault();
      if (zooming) this.camera.zoom(Math.exp(-event.deltaY / 300), at(event));
      else this.camera.pan(-sideways);
      this.wake(true);
    }, { passive: false });
    const go = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const { spso, speo } = this.snap, share = event.offsetX / overview.clientWidth, camera = this.camera;
      camera.pan(camera.x(camera.offset(camera.width / 2)) - camera.x(spso + share * (speo - spso)));
      this.wake(true);
    };
    for (const name of ["pointerdown", "pointermove"]) overview.addEventListener(name, go);
  }
  ask(event) {
    const { plot, tip } = this.page, box = plot.getBoundingClientRect(), { cell_top, cell_height } = this.look.sizes;
    const x = event.clientX - box.left, y = event.clientY - box.top, offset = Math.floor(this.camera.offset(x));
    tip.hidden = offset < 0 || y < cell_top - 4 || y > cell_top + cell_height + 4;
    if (tip.hidden) return;
    say(tip, describe(this.snap, cellAt(this.snap, offset), this.now()));
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
    const glided = this.moved || this.dirty || this.gliding;
    if (this.dirty) this.accept();
    if (!this.snap || !this.camera.width) return;
    this.dirty = this.moved = false;
    this.gliding = this.camera.move(Math.max(time, this.camera.start), this.calm.matches);
    if (glided) this.draw();
    this.drawTime();
    if (this.gliding || (this.clock.rate && this.visible)) this.wake();
  }

  // Journal time now: between snapshots it runs at the rate Python gave, up to where it said to wait.
  now() {
    const { rate, until_ms } = this.clock, ms = this.anchor.ms + (performance.now() - this.anchor.at) * rate;
    return Math.max(this.anchor.ms, Math.min(ms, until_ms ?? Infinity));
  }

  // Take in what changed: a new snapshot, a new size, a new theme, a new button state.
  accept() {
    const { model, page, camera, look } = this, snap = model.get("snapshot"), before = this.snap;
    this.anchor = { ms: snap === before ? this.now() : snap.now_ms, at: performance.now() };
    this.clock = model.get("clock");
    this.snap = snap;
    this.theme = themeOf(model.get("theme"));
    this.colours = this.palette[this.theme];
    for (const [name, colour] of Object.entries(this.colours)) page.root.style.setProperty(`--sq-${name}`, colour);
    page.root.dataset.theme = this.theme;
    const width = page.plot.clientWidth, resized = width !== camera.width;
    camera.width = width;
    if (!width) return;
    if (snap !== before || resized) camera.follow(snap);
    this.lanes = this.membersShown();
    const height = look.sizes.lane_top + look.sizes.lane * (this.lanes.length + (this.hidden > 0)) + 4;
    this.height = Math.max(height, this.height ?? 0); // never shrinks: what is below the strip must not jump
    page.plot.style.height = `${this.height}px`;
    put(page.svg, { width, height: this.height, "aria-label": snap.text });
    this.words();
    this.timeline();
    if (before && snap.order === before.order + 1 && !this.calm.matches) this.flow(before);
  }
  membersShown() {
    const members = this.snap.members.filter((member) => member.alive || member.held), { lanes } = this.look.sizes;
    const chosen = members.length <= lanes ? members : [...members].sort((a, b) => (b.held > 0) - (a.held > 0)).slice(0, lanes);
    this.hidden = members.length - chosen.length;
    return chosen;
  }
  words() {
    const { model, page, snap } = this, playing = model.get("playing"), live = model.get("live"), error = model.get("error");
    const leader = !snap.loaded ? "not loaded on any broker" : snap.leader >= 0 ? `leader broker ${snap.leader}` : "no leader";
    say(page.title, snap.group);
    say(page.where, `${snap.topic}-${snap.partition} · ${leader}`);
    put(page.root, { "aria-label": `Share-partition ${snap.topic}-${snap.partition} of group ${snap.group}`, "data-spso": snap.spso, "data-speo": snap.speo, "data-order": snap.order });
    say(page.play, playing ? "❚❚ pause" : "▶ play");
    put(page.play, { class: playing && "sq-on" });
    put(page.live, { class: live && "sq-on", "aria-pressed": String(live) });
    page.speed.value = String(model.get("speed"));
    const told = error || model.get("message") || snap.event?.text || "nothing has happened here yet", comma = told.indexOf(", ");
    say(page.count, `event ${snap.order} of ${model.get("total")}: `);
    say(page.what, comma > 0 ? told.slice(0, comma) : told);
    say(page.why, comma > 0 ? told.slice(comma) : "");
    const mark = snap.marks.find((one) => one.order === snap.order);
    put(page.sentence, { class: `sq-sentence${error || this.look.marks[mark?.kind] === "alarm" ? " sq-hot" : ""}`, "aria-live": playing ? "off" : "polite" });
  }
  timeline() {
    const { page, snap, model } = this, total = model.get("total"), room = page.plot.clientWidth;
    put(page.range, { max: total, "aria-valuetext": `event ${snap.order} of ${total}` });
    if (!this.scrubbing) page.range.value = snap.order;
    page.range.style.setProperty("--sq-done", total ? page.range.value / total : 0);
    let free = -Infinity; // where the last shown label ends
    page.marks.show(snap.marks, (mark) => `${mark.order} ${mark.kind}`, (node, mark) => {
      const share = total ? mark.order / total : 0, x = share * room, half = mark.text.length * 3 + 6;
      const shown = x - half > free && x - half > 0 && x + half < room;
      if (shown) free = x + half;
      say(node.firstChild, shown ? mark.text : "");
      put(node, { title: `${mark.text}, event ${mark.order}`, "aria-label": `go to ${mark.text}, event ${mark.order}` });
      node.style.setProperty("--sq-at", share);
      node.style.setProperty("--sq-mark", paint(this.look.marks[mark.kind] ?? "soft"));
      node.onclick = () => this.send("seek", mark.order);
    });
  }

  // ---- drawing: everything below reads the camera's present and the snapshot, and changes only the page

  draw() {
    const { camera, look, page, snap } = this, { cell_top, cell_height, pitch_cells } = look.sizes;
    put(page.root, { "data-mode": camera.cells ? "cells" : "runs" });
    this.drawGround();
    this.drawPlaces();
    this.drawCells();
    this.drawNames();
    const wide = (snap.speo - snap.spso) * pitch_cells > camera.room;
    page.overview.hidden = !wide;
    if (wide) this.drawOverview();
    const legend = `${this.theme} ${camera.cells} ${snap.runs.some((run) => run[STATE] === "archiving")}`;
    if (legend !== this.legend) page.legend.innerHTML = legendMarkup(this.palette, look, snap, camera.cells);
    this.legend = legend;
    page.tip.style.top = `${cell_top + cell_height + 8}px`;
  }
  drawGround() {
    const { camera, colours, look, page, snap } = this, sizes = look.sizes, { spso, speo } = camera.now;
    const ctx = canvasOf(page.ground, camera.width, sizes.lane_top);
    const left = clamp(camera.x(spso) - 4, -20, camera.width + 20), right = clamp(camera.x(speo) + 1, -20, camera.width + 20);
    ctx.beginPath();
    ctx.roundRect(left, sizes.cell_top - sizes.band_above, Math.max(right - left, 0), sizes.cell_height + sizes.band_above + sizes.band_below, 8);
    Object.assign(ctx, { fillStyle: colours.band, strokeStyle: colours.bandline, lineWidth: 1, textAlign: "center", font: `700 14px ${getComputedStyle(page.root).fontFamily}` });
    ctx.fill();
    ctx.stroke();
    if (camera.cells) return;
    const box = { top: sizes.cell_top, height: sizes.cell_height, first: camera.now.first, end: camera.offset(camera.width) };
    drawBlocks(ctx, snap, (offset) => camera.x(offset), box, colours, look.shapes, true);
  }

  // Flags, ends of the log, and offsets under the cells. What is out of view is named at the edge, with where to look.
  drawPlaces() {
    const { camera, snap } = this, items = [], { spso, speo, log_start, log_end } = camera.now, { sizes } = this.look;
    const foot = sizes.cell_top + sizes.cell_height, line = (key, d, css) => items.push({ key, tag: "path", d, class: css });
    const label = (key, x, y, text, anchor, css) => {
      const off = x < 2 ? "‹ " : x > camera.width - 2 ? " ›" : "", w = text.length * 6.4 + 14;
      const side = off === "‹ " ? "start" : off ? "end" : anchor === "middle" && x < w / 2 ? "start" : anchor === "middle" && x > camera.width - w / 2 ? "end" : anchor;
      items.push({ key, tag: "text", x: clamp(x, 4, camera.width - 4), y, text: off === "‹ " ? off + text : text + off, "text-anchor": side, class: css });
    };
    const left = camera.x(spso) - 4, right = camera.x(speo) + 1, tight = right - left < 160, empty = snap.spso === snap.speo;
    line("spso", `M${left} 6V${foot + sizes.band_below}`, "sq-flag");
    label("SPSO", left + (tight && !empty ? -6 : 6), 18, `SPSO ${snap.spso}${empty ? " · empty window" : ""}`, tight && !empty ? "end" : "start", "sq-strong");
    line("speo", `M${right} 6V${foot + sizes.band_below}`, "sq-flag");
    if (!empty) label("SPEO", right + (tight ? 6 : -6), 18, `SPEO ${snap.speo - 1}`, tight ? "start" : "end", "sq-strong");
    for (const [key, offset, known] of [["log start", log_start, snap.log_start], ["log end", log_end, snap.log_end]]) {
      if (known < 0) continue;
      line(key, `M${camera.x(offset) - 1.5} 34V${foot + 36}`, "sq-edge");
      label(`${key}:`, camera.x(offset) - 1.5, foot + 48, `${key} ${known}`, "middle", "sq-small");
    }
    this.offsets(label, foot + 18);
    this.places.show(items, (item) => item.key, (node, { key, tag, text, ...attributes }) => {
      put(node, attributes);
      if (tag === "text") say(node, text);
    });
  }
  offsets(label, y) {
    const { camera, snap } = this, half = camera.cells ? (camera.now.pitch - this.look.sizes.gap) / 2 : 0;
    const need = Math.max(100, String(snap.speo).length * 7 + 40), exact = need / camera.now.pitch, ten = 10 ** Math.floor(Math.log10(exact));
    const step = Math.max([1, 2, 5, 10].find((n) => n * ten >= exact) * ten, 1);
    const end = Math.min(camera.offset(camera.width - 12), snap.log_end < 0 ? snap.speo : Math.max(snap.log_end, snap.speo));
    for (let o = Math.ceil(Math.max(camera.offset(12), snap.log_start, 0) / step) * step; o < end; o += step) {
      label(`#${o}`, camera.x(o) + half, y, String(o), "middle", "sq-small");
    }
  }
  drawCells() {
    const { camera, look, snap } = this, { pitch } = camera.now, items = [];
    if (camera.cells) {
      const end = camera.offset(camera.width);
      for (let o = Math.max(Math.floor(camera.now.first), 0); o < end; o++) items.push(cellAt(snap, o));
    }
    this.cells.show(items, (cell) => cell.offset, (node, cell) => {
      const { kind, run } = cell, holder = memberOf(snap, run);
      put(node, { transform: `translate(${camera.x(cell.offset)} ${look.sizes.cell_top})` });
      const face = `${kind} ${run?.[STATE]} ${run?.[COUNT]} ${holder?.letter} ${run?.[TO]} ${snap.delivery_count_limit} ${pitch}`;
      if (face === node.face) return;
      const changed = node.face && node.state !== run?.[STATE];
      Object.assign(node, { face, state: run?.[STATE] });
      node.innerHTML = cellMarkup(cell, snap, look, pitch, this.id);
      put(node, { class: `sq-cell sq-${kind}${changed ? " sq-new" : ""}`, "data-offset": cell.offset, "data-kind": kind, "data-state": run?.[STATE], "data-count": run?.[COUNT], "data-member": holder?.name, "data-letter": holder?.letter, "data-to": run?.[TO] });
    });
  }
  drawOverview() {
    const { camera, colours, look, page, snap } = this, width = camera.width, ctx = canvasOf(page.overview, width, OVERVIEW);
    const scale = width / (snap.speo - snap.spso), x = (offset) => (offset - snap.spso) * scale;
    drawBlocks(ctx, snap, x, { top: 2, height: OVERVIEW - 4, first: snap.spso, end: snap.speo }, colours, look.shapes, false);
    const left = Math.max(x(camera.now.first), 1), right = Math.min(x(camera.offset(width)), width - 1);
    Object.assign(ctx, { strokeStyle: colours.ink, lineWidth: 2 });
    ctx.strokeRect(left, 1, Math.max(right - left, 3), OVERVIEW - 2);
  }
  drawNames() {
    const { camera, hidden, lanes, look, snap } = this, { gutter_left, lane, lane_top } = look.sizes, items = [];
    lanes.forEach((member, i) => {
      const y = lane_top + lane * i + 11, words = member.alive ? "" : " ✝";
      items.push({ key: `name ${member.id}`, x: gutter_left - 14, y, text: `${short(member.name, 14)}${words} ${member.letter}`, "text-anchor": "end", class: member.held ? "" : "sq-small" });
      items.push({ key: `left ${member.id}`, x: clamp(camera.x(snap.speo) + 12, gutter_left + 8, camera.right + 12), y, member });
    });
    if (hidden > 0) items.push({ key: "more", x: gutter_left - 14, y: lane_top + lane * lanes.length + 11, text: `and ${hidden} more`, "text-anchor": "end", class: "sq-small" });
    this.names.show(items, (item) => item.key, (node, { key, text, member, ...attributes }) => {
      put(node, attributes);
      if (member) node.member = member;
      else say(node, text);
    });
  }

  // What changes with time alone: lock bars, the seconds beside them, the chips.
  drawTime() {
    const { camera, colours, look, page, snap } = this, { lane, lane_bar, narrow } = look.sizes, now = this.now();
    const duration = snap.lock_duration_ms, hot = (left) => left * look.lock_alarm < duration;
    const ctx = canvasOf(page.lanes, camera.width, this.height - look.sizes.lane_top);
    const rows = new Map(this.lanes.map((member, i) => [member.id, i * lane]));
    for (let i = runIndex(snap.runs, camera.now.first); i < snap.runs.length; i++) {
      const run = snap.runs[i], y = rows.get(run[MEMBER]), x = camera.x(run[FIRST]);
      if (x > camera.width) break;
      if (y === undefined || run[STATE] !== "acquired") continue;
      const left = (run[DEADLINE] ?? now) - now, width = Math.max(camera.x(run[END]) - x - (camera.cells ? look.sizes.gap : 0), 1);
      this.drawLock(ctx, { x, y, width, height: lane_bar, full: clamp(left / duration, 0, 1) }, colours[hot(left) ? "alarm" : "acquired"]);
    }
    for (const node of this.names.nodes.values()) {
      if (!node.member) continue;
      const left = node.member.deadline_ms === null ? null : node.member.deadline_ms - now;
      say(node, left === null ? (node.member.held ? "" : "holds nothing") : `${seconds(left)}${camera.width < narrow ? "" : " of lock left"}`);
      put(node, { class: left === null ? "sq-small" : hot(left) ? "sq-hot" : "" });
    }
    this.chips(now);
  }
  // Wide bars run down sideways; bars too narrow for that run down from the top.
  drawLock(ctx, { x, y, width, height, full }, colour) {
    ctx.fillStyle = ctx.strokeStyle = colour;
    if (width < 8) {
      ctx.fillRect(x, y + height * (1 - full), width, height * full);
      return;
    }
    for (const [w, stroke] of [[width - 1, true], [(width - 1) * full, false]]) {
      ctx.beginPath();
      ctx.roundRect(x + 0.5, y + 0.5, w, height - 1, 4);
      if (stroke) ctx.stroke();
      else ctx.fill();
    }
  }
  chips(now) {
    const { page, snap } = this, last = lastAttempts(snap), full = snap.in_flight >= snap.max_record_locks;
    const items = [["in flight", `${snap.in_flight}`, ` / ${snap.max_record_locks}${full ? " · window full" : ""}`, full]];
    if (snap.lag !== null) items.push(["lag", `${snap.lag}`, "", false]);
    if (last) items.push([`${last} record${last > 1 ? "s" : ""} on ${last > 1 ? "their" : "its"} last attempt`, "", "", true]);
    if (snap.writes.length) items.push([`${snap.writes.length} state write${snap.writes.length > 1 ? "s" : ""} under way`, "", "", false]);
    items.push([`t ${clockText(now - snap.origin_ms)}`, "", "", false]);
    page.chips.show(items, (item) => item[0].replace(/[\d:.]+/g, ""), (node, [before, value, after, alarm]) => {
      if (!node.firstChild) for (const tag of ["span", "b", "span"]) add(node, tag);
      [before + (value && " "), value, after].forEach((text, i) => say(node.children[i], text));
      put(node, { class: `sq-chip${alarm ? " sq-hot" : ""}` });
    });
  }

  // Cause and effect: what is acquired goes down into its holder's lane, what comes back rises from it.
  flow(before) {
    const { first, end } = this.snap.event ?? {}, { camera, look, page } = this, { sizes } = look;
    if (!camera.cells || first === null || first === undefined) return;
    const changed = [];
    for (let o = Math.max(first, Math.floor(camera.now.first)); o < Math.min(end, camera.offset(camera.width)); o++) {
      const was = runAt(before.runs, o), is = runAt(this.snap.runs, o), down = is?.[STATE] === "acquired";
      if (was?.[STATE] === is?.[STATE] || (!down && was?.[STATE] !== "acquired") || is?.[STATE] === "acknowledged") continue;
      const lane = this.lanes.findIndex((member) => member.id === (down ? is : was)[MEMBER]);
      if (lane >= 0) changed.push({ o, lane, down });
    }
    for (const { o, lane, down } of changed.slice(0, FLOWS)) {
      const ghost = add(page.flows, "rect", { x: camera.x(o), y: sizes.cell_top, width: camera.now.pitch - sizes.gap, height: sizes.lane_bar, rx: 4, class: "sq-flow" });
      const away = { transform: `translateY(${sizes.lane_top + lane * sizes.lane - sizes.cell_top}px)`, opacity: 0.9 }, home = { transform: "none", opacity: 0.3 };
      ghost.animate(down ? [home, away] : [away, home], { duration: MOTION_MS, easing: "ease-out" }).finished.then(() => ghost.remove(), () => ghost.remove());
    }
  }
}

export default {
  render({ model, el }) {
    const strip = new Strip(model, el);
    return () => strip.close();
  },
};
