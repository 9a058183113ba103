// The picture: cells or blocks, the window and its flags, lanes with their locks, and the flows between them.
// It reads the snapshot and the camera's current range, and changes only the page.

/** @import { Attribute, Cell, Colours, Lane, Look, Snapshot, Words } from "./types.d.ts" */
/** @import { Camera } from "./camera.js" */
/** @import { Page } from "./partition_strip.js" */

import {
  COUNT, DEADLINE, END, FIRST, Keyed, MEMBER, STATE, TO,
  add, canvasOf, cellAt, cellMarkup, clamp, drawBlocks, memberOf, put, runAt, runIndex, seconds, setLabel, setTitle,
} from "./draw.js";
import { explained } from "./terms.js";

const OVERVIEW = 18; // height of the overview
const FLAT = 8; // what the place of the lanes is above the labels of the log
const COLUMNS = 980; // a room whose strip is narrower has two columns of views, or one, px
const FLOW_MS = 200;
const FLOWS = 12; // with more offsets changing at once no flows are drawn

/**
 * A place is a line (a path) or a label (a text) with its attributes; a name has a text, or a lane whose time is shown.
 * @typedef {{ key: string, tag: "path" | "text", text?: string } & Record<string, Attribute>} Place
 * @typedef {{ key: string, x: number, y: number, text?: string, lane?: Lane, "text-anchor"?: string, class?: string }} Name
 * A cell is drawn again when its face changes.
 * @typedef {SVGGElement & { face?: string, state?: string }} CellNode
 * @typedef {SVGTextElement & { lane?: Lane }} NameNode
 */

export class Scene {
  /** @param {Page} page @param {Look} look @param {Camera} camera @param {string} id @param {Snapshot} snap @param {Words} words @param {Colours} colours */
  constructor(page, look, camera, id, snap, words, colours) {
    this.page = page;
    this.look = look;
    this.camera = camera;
    this.id = id;
    this.snap = snap;
    this.colours = colours;
    this.height = 0;
    this.flattened = false;
    /** @type {Words} */
    this.words = words;
    this.selection = ""; // the selected subject
    /** @type {Lane[]} */
    this.lanes = [];
    /** @type {Keyed<Cell, CellNode>} */
    this.cells = new Keyed(page.cells, (parent) => add(parent, "g"));
    /** @type {Keyed<Place, SVGElement>} */
    this.places = new Keyed(page.places, (parent, item) => add(parent, item.tag));
    /** @type {Keyed<Name, NameNode>} */
    this.names = new Keyed(page.names, (parent) => add(parent, "text"));
  }

  /**
   * Apply a snapshot. The height never shrinks, so that content below the strip does not jump.
   * @param {Snapshot} snap @param {Words} words @param {Colours} colours
   */
  take(snap, words, colours) {
    const { lane, lane_top } = this.look.sizes, flat = this.flat();
    if (flat !== this.flattened) this.height = 0;
    this.flattened = flat;
    this.words = words;
    this.lanes = flat ? [] : words.lanes;
    this.height = Math.max(lane_top + (flat ? -FLAT : lane * (words.lanes.length + Number(words.more !== "")) + 4), this.height);
    this.page.plot.style.height = `${this.height}px`;
    this.page.plot.classList.toggle("sq-stale", !snap.loaded && !snap.observed);
    put(this.page.svg, { width: this.camera.width, height: this.height, "aria-label": snap.text });
    this.snap = snap;
    this.colours = colours;
  }
  // In a room, the view of the locks says what the lanes say: they give their place to it where the window is low. A
  // narrow room is higher than any window, and scrolled below the strip: there they need less.
  flat() {
    const least = this.camera.width < COLUMNS ? 800 : 1100;
    return Boolean(this.page.root.closest(".sq-room")) && matchMedia(`(max-height: ${least}px)`).matches;
  }
  draw() {
    this.drawGround();
    this.drawPlaces();
    this.drawCells();
    this.drawNames();
    this.drawOverview();
  }

  drawGround() {
    const { camera, colours, look, page, snap } = this, sizes = look.sizes, { spso, window_end, first } = camera.now;
    const ctx = canvasOf(page.ground, camera.width, sizes.lane_top);
    /** @param {number} x */
    const edge = (x) => clamp(x, -20, camera.width + 20);
    const left = edge(camera.x(spso) - 4), right = edge(camera.x(window_end) + 1);
    const font = `700 14px ${getComputedStyle(page.root).fontFamily}`;
    Object.assign(ctx, { fillStyle: colours.band, strokeStyle: colours.bandline, lineWidth: 1, textAlign: "center", font });
    if (window_end > spso) {
      ctx.beginPath();
      ctx.roundRect(left, sizes.cell_top - sizes.band_above, right - left, sizes.cell_height + sizes.band_above + sizes.band_below, 8);
      ctx.fill();
      ctx.stroke();
    }
    if (camera.cells) return;
    const box = { top: sizes.cell_top, height: sizes.cell_height, first, end: camera.offset(camera.width) };
    drawBlocks(ctx, snap, (offset) => camera.x(offset), box, colours, look.shapes, true);
  }

  // Flags, ends of the log, offsets. Those out of view are named at the edge, with their direction.
  drawPlaces() {
    const { camera, snap, words } = this, { spso, window_end, log_start, log_end } = camera.now, { band_below, cell_top, cell_height, digit, ends_near } = this.look.sizes;
    const [low, high] = words.flags, foot = cell_top + cell_height, left = camera.x(spso) - 4, right = high ? camera.x(window_end) + 1 : left;
    const outside = Boolean(high) && right - left < Math.max(160, 8.4 * (low.length + high.length) + 24); // both labels cannot stand inside a narrow window
    /** @type {Place[]} */
    const items = [];
    /** @param {string} key @param {string} d @param {string} css */
    const line = (key, d, css) => items.push({ key, tag: "path", d, class: css });
    /** @param {string} key @param {number} x @param {number} y @param {string} text @param {string} anchor @param {string} css */
    const label = (key, x, y, text, anchor, css) => items.push({ key, tag: "text", y, class: css, ...this.kept(x, text, anchor) });
    line("spso", `M${left} 6V${foot + band_below}`, "sq-flag");
    label("SPSO", left + (outside ? -6 : 6), 18, low, outside ? "end" : "start", "sq-strong");
    if (high) {
      line("window_end", `M${right} 6V${foot + band_below}`, "sq-flag");
      label("SPEO", right + (outside ? 6 : -6), 18, high, outside ? "start" : "end", "sq-strong");
    }
    const edges = [left, right], near = snap.log_start >= 0 && camera.x(log_end) - camera.x(log_start) < ends_near; // their labels would overlap
    for (const { name, offset, side, text } of [{ name: "log start", offset: log_start, side: "end", text: words.ends[0] }, { name: "log end", offset: log_end, side: "start", text: words.ends[1] }]) {
      if (!text) continue;
      edges.push(camera.x(offset) - 1.5);
      line(name, `M${camera.x(offset) - 1.5} 34V${foot + 36}`, "sq-edge");
      label(`${name}:`, camera.x(offset) - 1.5 + (near ? { end: -4, start: 4 }[side] ?? 0 : 0), foot + 48, text, near ? side : "middle", "sq-small");
    }
    for (const { offset, x } of this.offsets()) { // a line that would cross a number has a name of its own
      const half = `${offset}`.length * digit / 2 + 1;
      if (edges.every((edge) => Math.abs(x - edge) > half)) label(`#${offset}`, x, foot + 18, `${offset}`, "middle", "sq-small");
    }
    this.places.show(items, (item) => item.key, (node, { key, tag, text, ...attributes }) => {
      put(node, attributes);
      if (tag !== "text" || text === undefined) return;
      setLabel(node, text);
      setTitle(node, explained(text));
    });
  }
  /** A label kept inside the picture. @param {number} x @param {string} text @param {string} anchor */
  kept(x, text, anchor) {
    const { width } = this.camera, half = text.length * 3.2 + 7, edge = anchor === "middle" ? half : 0;
    if (x < 2) return { x: 4, text: `‹ ${text}`, "text-anchor": "start" };
    if (x > width - 2) return { x: width - 4, text: `${text} ›`, "text-anchor": "end" };
    if (anchor === "start" && x + 2 * half > width) return { x: width - 2, text, "text-anchor": "end" };
    return { x, text, "text-anchor": x < edge ? "start" : x > width - edge ? "end" : anchor };
  }
  // Round offsets of the log in view, at legible distances.
  offsets() {
    const { camera, snap } = this, half = camera.cells ? (camera.now.pitch - this.look.sizes.gap) / 2 : 0;
    const exact = Math.max(100, String(snap.window_end).length * 7 + 40) / camera.now.pitch, ten = 10 ** Math.floor(Math.log10(exact));
    const step = Math.max(([1, 2, 5].find((n) => n * ten >= exact) ?? 10) * ten, 1), end = Math.min(camera.offset(camera.width - 12), Math.max(snap.log_end, snap.window_end));
    const shown = [];
    for (let o = Math.ceil(Math.max(camera.offset(12), snap.log_start, 0) / step) * step; o < end; o += step) shown.push({ offset: o, x: camera.x(o) + half });
    return shown;
  }

  drawCells() {
    const { camera, look, snap } = this, { first, pitch } = camera.now, end = camera.cells ? camera.offset(camera.width) : -1;
    const items = [];
    for (let o = Math.max(Math.floor(first), 0); o < end; o++) items.push(cellAt(snap, o));
    this.cells.show(items, (cell) => cell.offset, (node, cell) => {
      const { kind, offset, run } = cell, holder = memberOf(snap, run), state = run?.[STATE];
      put(node, { transform: `translate(${camera.x(offset)} ${look.sizes.cell_top})` });
      const selected = this.selects(offset, run?.[MEMBER]);
      const face = [kind, state, run?.[COUNT], holder?.letter, run?.[TO], snap.delivery_count_limit, pitch, selected].join();
      if (face === node.face) return;
      const fresh = node.face && node.state !== state;
      Object.assign(node, { face, state, innerHTML: cellMarkup(cell, snap, look, pitch, this.id) });
      put(node, {
        class: `sq-cell sq-${kind}${fresh ? " sq-new" : ""}${selected ? " sq-selected" : ""}`, "data-offset": offset, "data-kind": kind, "data-state": state,
        "data-count": run?.[COUNT], "data-member": holder?.name, "data-letter": holder?.letter, "data-to": run?.[TO],
      });
    });
  }

  /** True if the offset, or its holder, is selected. @param {number} offset @param {string | null | undefined} member */
  selects(offset, member) {
    const { selection, snap } = this;
    return Boolean(selection) && (selection === `record:${snap.topic}-${snap.partition}:${offset}` || selection === `member:${member}`);
  }

  // The whole window, if it is too wide for cells; hidden, but in place, while all of it is in view.
  drawOverview() {
    const { camera, colours, look, page, snap } = this, { spso, window_end } = snap, width = camera.width;
    page.overview.hidden = (window_end - spso) * look.sizes.pitch_cells <= camera.room;
    const first = camera.now.first, end = camera.offset(width), all = first <= spso && end >= window_end;
    page.overview.style.visibility = all ? "hidden" : "visible";
    if (page.overview.hidden || all) return;
    const ctx = canvasOf(page.overview, width, OVERVIEW);
    /** @param {number} offset */
    const x = (offset) => ((offset - spso) * width) / (window_end - spso);
    drawBlocks(ctx, snap, x, { top: 2, height: OVERVIEW - 4, first: spso, end: window_end }, colours, look.shapes, false);
    const left = clamp(x(first), 1, width - 4), right = clamp(x(end), 4, width - 1);
    Object.assign(ctx, { strokeStyle: colours.ink, lineWidth: 2 });
    ctx.strokeRect(left, 1, Math.max(right - left, 3), OVERVIEW - 2);
  }

  drawNames() {
    const { camera, lanes, snap, words: { more } } = this, { lane, lane_top, name_right } = this.look.sizes, narrow = Number(camera.narrow);
    /** @type {Name[]} */
    const items = [];
    /** @param {string} key @param {number} row @param {string} text @param {string} css */
    const name = (key, row, text, css) => items.push({ key, x: camera.left - name_right, y: lane_top + lane * row + 11, text, "text-anchor": "end", class: css });
    const x = clamp(camera.x(snap.window_end) + 12, camera.left + 8, camera.right + 12);
    lanes.forEach((owner, row) => {
      name(`name ${owner.id}`, row, owner.name[narrow], owner.held ? "" : "sq-small");
      items.push({ key: `left ${owner.id}`, x, y: lane_top + lane * row + 11, lane: owner });
    });
    if (more && !this.flattened) name("more", lanes.length, more, "sq-small");
    this.names.show(items, (item) => item.key, (node, { key, text, lane: owner, ...attributes }) => {
      put(node, attributes);
      if (owner) node.lane = owner;
      else if (text !== undefined) setLabel(node, text);
      if (owner) setTitle(node, owner.deadline_ms == null ? "" : explained("lock"));
    });
  }

  /** The parts that change with time alone: lock bars, and the seconds beside them. @param {number} now */
  drawTime(now) {
    const { camera, colours, look, page, snap } = this, { gap, lane, lane_bar, lane_bar_narrow, lane_top } = look.sizes;
    const duration = snap.lock_duration_ms;
    /** @param {number} left */
    const hot = (left) => left * look.lock_alarm < duration;
    const ctx = canvasOf(page.lanes, camera.width, this.height - lane_top), rows = new Map(this.lanes.map(({ id }, row) => [id, row]));
    ctx.beginPath(); // bars end where names and times begin
    ctx.rect(camera.left - 8, 0, camera.right + 16 - camera.left, this.height);
    ctx.clip();
    for (let i = runIndex(snap.runs, camera.now.first); i < snap.runs.length; i++) {
      const run = snap.runs[i], row = rows.get(run[MEMBER] ?? ""), x = camera.x(run[FIRST]);
      if (x > camera.width) break;
      if (row === undefined || run[STATE] !== "acquired") continue;
      const left = (run[DEADLINE] ?? now + duration) - now, width = Math.max(camera.x(run[END]) - x - (camera.cells ? gap : 0), 1);
      drawLock(ctx, { x, y: row * lane, width, height: lane_bar, sideways: width >= lane_bar_narrow, full: clamp(left / duration, 0, 1) }, colours[hot(left) ? "alarm" : "acquired"]);
    }
    for (const node of this.names.nodes.values()) {
      if (!node.lane) continue;
      const { deadline_ms, holds } = node.lane, left = deadline_ms == null ? null : deadline_ms - now;
      setLabel(node, left == null ? holds[Number(camera.narrow)] : `${seconds(left)}${camera.narrow ? "" : " of lock left"}`);
      put(node, { class: left == null ? "sq-small" : hot(left) ? "sq-hot" : "" });
    }
  }

  /** Flows: acquired records move down into their holder's lane, returned records up from it. @param {Snapshot} before */
  flow(before) {
    const { camera, snap } = this;
    /** @type {Flow[]} */
    const changed = [];
    if (!camera.cells) return;
    const stop = Math.min(snap.window_end, camera.offset(camera.width));
    for (let offset = Math.max(before.spso, Math.floor(camera.now.first)); offset < stop && changed.length < FLOWS; offset++) {
      const was = runAt(before.runs, offset), is = runAt(snap.runs, offset), down = is?.[STATE] === "acquired";
      const moved = was?.[STATE] !== is?.[STATE] && (down || (was?.[STATE] === "acquired" && is?.[STATE] === "available"));
      const row = moved ? this.lanes.findIndex(({ id }) => id === (down ? is : was)?.[MEMBER]) : -1;
      if (row >= 0) changed.push({ offset, row, down });
    }
    for (const one of changed) this.ghost(one);
  }
  /** @typedef {{ offset: number, row: number, down: boolean }} Flow @param {Flow} flow */
  ghost({ offset, row, down }) {
    const { camera, page } = this, { cell_top, gap, lane, lane_bar, lane_top } = this.look.sizes;
    const rect = add(page.flows, "rect", { x: camera.x(offset), y: cell_top, width: camera.now.pitch - gap, height: lane_bar, rx: 4, class: "sq-flow" });
    const there = { transform: `translateY(${lane_top + lane * row - cell_top}px)`, opacity: 0.9 }, here = { transform: "none", opacity: 0.3 };
    const flight = rect.animate(down ? [here, there] : [there, here], { duration: FLOW_MS, easing: "ease-out" });
    flight.onfinish = flight.oncancel = () => rect.remove();
  }
}

/**
 * Wide bars run down sideways; bars too narrow for that run down from the top.
 * @param {CanvasRenderingContext2D} ctx
 * @param {{ x: number, y: number, width: number, height: number, sideways: boolean, full: number }} bar `full`: the part that is left, 0 to 1
 * @param {string} colour
 */
function drawLock(ctx, { x, y, width, height, sideways, full }, colour) {
  ctx.fillStyle = ctx.strokeStyle = colour;
  if (!sideways) {
    ctx.fillRect(x, y + height * (1 - full), width, height * full);
    return;
  }
  /** @param {number} part */
  const trace = (part) => {
    ctx.beginPath();
    ctx.roundRect(x + 0.5, y + 0.5, (width - 1) * part, height - 1, 4);
  };
  trace(1);
  ctx.stroke();
  trace(full);
  ctx.fill();
}
