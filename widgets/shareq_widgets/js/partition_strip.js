// The partition strip in the browser: it draws snapshots and decides nothing about records.

/** @import { Model, Snapshot, StripCommand } from "./types.d.ts" */

import { Camera, steer, steerFrom } from "./camera.js";
import { keepWhole } from "./changes.js";
import { ROWS } from "./commands.js";
import { add, cellAt, clamp, describe, legendMarkup, put, setText } from "./draw.js";
import { Player, button } from "./player.js";
import { Scene } from "./scene.js";

const REST_MS = 150; // a strip whose place has not changed for so long rests

/**
 * The elements of the picture; content is filled in later.
 * @typedef {ReturnType<typeof build>} Page
 * @param {Player["page"]} page @param {number} lane_top
 */
function build({ root, plot, svg, after, bar }, lane_top) {
  const ground = add(plot, "canvas", { "aria-hidden": "true" });
  const lanes = add(plot, "canvas", { "aria-hidden": "true", style: `top:${lane_top}px` });
  plot.append(svg); // above the canvases
  const [places, cells, names, flows] = [add(svg, "g"), add(svg, "g"), add(svg, "g"), add(svg, "g")];
  const tip = add(plot, "div", { class: "sq-tip", hidden: true });
  const overview = add(after, "canvas", { class: "sq-overview", title: "the whole window: click or drag to go there", hidden: true });
  const legend = add(root, "div", { class: "sq-legend sq-soft" }), zoom = add(bar, "span", { class: "sq-zoom" });
  for (const [name, { strip }] of ROWS) if (strip) button(zoom, name);
  return { root, plot, svg, ground, lanes, places, cells, names, flows, tip, overview, legend };
}

class Strip extends Player {
  /** @param {Model} model @param {Element} host */
  constructor(model, host) {
    super(model, host, "strip");
    this.parts = build(this.page, this.look.sizes.lane_top);
    this.camera = new Camera(this.look.sizes);
    this.scene = new Scene(this.parts, this.look, this.camera, this.id, model.get("snapshot"), model.get("words"), this.palette.light);
    /** @type {Record<StripCommand, () => void>} */
    const zooms = {
      out: () => this.camera.zoom(0.8),
      fit: () => this.camera.fit(),
      in: () => this.camera.zoom(1.25),
    };
    Object.assign(this.presses, zooms);
    this.legended = "";
    this.looked = ""; // the offsets that the kernel has been asked for lanes of
    this.looking = 0;
    /** @type {{ x: number, y: number } | null} */
    this.asked = null; // where the pointer rests on a record, whose tooltip is open
    this.point();
  }

  // ---- pointer: camera.js has what moves the range

  point() {
    const { plot, overview } = this.parts, { camera } = this;
    const moved = () => this.wake(true);
    steer(camera, plot, {
      moved,
      dragged: () => { this.closeTip(); moved(); },
      clicked: (event) => this.choose(event),
      hovered: (event) => this.ask(event),
    });
    steerFrom(camera, overview, moved);
    plot.addEventListener("pointerleave", () => this.closeTip());
  }
  /** A click on a cell selects its record, one on a lane its member. @param {PointerEvent} event */
  choose(event) {
    if (!this.snap || !this.camera.placed) return;
    const box = this.parts.plot.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const { cell_top, cell_height, lane, lane_top } = this.look.sizes, { topic, partition, log_end } = this.snap;
    const offset = Math.floor(this.camera.offset(x)), owner = this.scene.lanes[Math.floor((y - lane_top) / lane)];
    const subject = y < cell_top + cell_height && offset >= 0 && offset < log_end ? `record:${topic}-${partition}:${offset}` : owner && `member:${owner.id}`;
    if (subject) this.send("select", subject === this.model.get("selection") ? "" : subject);
  }
  /** @param {PointerEvent} event */
  ask(event) {
    const box = this.parts.plot.getBoundingClientRect();
    this.asked = { x: event.clientX - box.left, y: event.clientY - box.top };
    this.tell(this.now());
  }
  closeTip() {
    this.asked = null;
    this.parts.tip.hidden = true;
  }
  /** The tooltip of the record below the pointer, also if the record or its place changes there. @param {number} now */
  tell(now) {
    if (!this.asked || !this.snap || !this.camera.placed) return;
    const { plot, tip } = this.parts, { cell_top, cell_height } = this.look.sizes, { x, y } = this.asked, offset = Math.floor(this.camera.offset(x));
    const hidden = offset < 0 || y < cell_top - 4 || y > cell_top + cell_height + 4, text = hidden ? "" : describe(this.snap, cellAt(this.snap, offset), now);
    if (tip.hidden === hidden && tip.textContent === text && tip.dataset.x === String(x)) return; // a size that is read lays out the page
    tip.hidden = hidden;
    setText(tip, text);
    put(tip, { "data-x": x });
    if (hidden) return;
    tip.style.left = `${clamp(x + 12, 0, Math.max(plot.clientWidth - tip.offsetWidth, 0))}px`;
    tip.style.top = `${clamp(cell_top + cell_height + 8, 0, Math.max(plot.clientHeight - tip.offsetHeight, 0))}px`;
  }

  // ---- drawing

  /** @override @param {Snapshot | null} before */
  take(before) {
    const { camera, scene, snap } = this;
    if (!snap) return;
    if (snap !== before || this.width !== camera.width) camera.follow(snap, this.width);
    scene.selection = this.model.get("selection");
    scene.take(snap, this.held.words, this.colours);
    put(this.page.root, { "data-spso": snap.spso, "data-window-end": snap.window_end, "data-observed": snap.observed });
    if (before && snap.order > before.order && snap.step?.first === before.order + 1 && !this.calm.matches) scene.flow(before);
  }
  /** @override @param {number} time */
  glide(time) {
    return this.camera.placed && this.camera.move(time, this.calm.matches);
  }
  /** @override */
  draw() {
    if (!this.snap || !this.camera.placed) return;
    put(this.page.root, { "data-mode": this.camera.cells ? "cells" : "runs" });
    this.scene.draw();
    this.legend(this.snap);
    this.askLanes(this.snap);
  }
  /** @override @param {number} now */
  drawTime(now) {
    if (!this.camera.placed) return;
    this.scene.drawTime(now);
    this.tell(now);
  }
  // If there are more members than lanes, those in view have them: the kernel gets the offsets once the strip rests.
  /** @param {Snapshot} snap */
  askLanes(snap) {
    const { camera } = this, first = Math.max(Math.floor(camera.goal.first), 0), end = Math.ceil(camera.goal.first + camera.width / camera.goal.pitch);
    const offsets = this.held.words.more && (first > snap.spso || end < snap.window_end) ? [first, Math.max(end, first)] : null, asked = offsets?.join() ?? "";
    clearTimeout(this.looking);
    if (asked === this.looked) return;
    this.looking = setTimeout(() => {
      this.looked = asked;
      this.send("look", offsets);
    }, REST_MS);
  }
  /** @override */
  close() {
    clearTimeout(this.looking);
    super.close();
  }
  /** @param {Snapshot} snap */
  legend(snap) {
    const { camera, look, parts } = this, { legend } = this.held.words, face = `${camera.cells} ${snap.observed} ${legend}`;
    if (face !== this.legended) parts.legend.innerHTML = legendMarkup(legend, look, snap, camera.cells);
    this.legended = face;
  }
}

export default {
  /** @param {{ model: Model }} context */
  initialize({ model }) { keepWhole(model); },
  /** @param {{ model: Model, el: HTMLElement }} context */
  render({ model, el }) {
    const strip = new Strip(model, el);
    return () => strip.close();
  },
};
