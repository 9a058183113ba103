// A picture of a group in the browser: it draws the elements that Python describes, and decides nothing about them.
// An element with a known key moves to its new place; attributes with a rate run with the displayed time.

/** @import { Brush, Drawing, DrawingChange, Element as Drawn, Model } from "./types.d.ts" */

import { Keyed, add, clamp, put, seconds, setText } from "./draw.js";
import { apply } from "./film.js";
import { Player, keepWhole, targetOf } from "./player.js";

const TRAVEL_MS = 600; // along a path
const STOPS = 16; // points of a path that are stops of the journey
const PAINTS = ["fill", "stroke", "marker-end"];
const SIZES = ["width", "height", "r"]; // never negative
const PATTERNS = ["hatch", "dots", "veil", "arrow", "hot-arrow"];

const MOTIONS = 80; // with more elements changing at once none of them moves smoothly
const COURSES = 100; // measured paths that are kept

/** @type {Map<string, { x: number, y: number }[]>} */
const courses = new Map();

/** @typedef {SVGElement & { face?: string, drawn?: Drawn }} Shown */

/** @param {unknown} value @param {string} id */
const paint = (value, id) => (value === "none" ? "none" : PATTERNS.includes(String(value)) ? `url(#${id}-${value})` : `var(--sq-${value})`);

/**
 * The text of an element that may also have a tooltip.
 * @param {SVGElement} node @param {string} text
 */
function setLabel(node, text) {
  if (!(node.firstChild instanceof Text)) node.prepend("");
  if (node.firstChild && node.firstChild.nodeValue !== text) node.firstChild.nodeValue = text;
}

/**
 * A drawing after a change: elements by key, in the order of `keys`.
 * @param {Drawing} drawing @param {DrawingChange} change @returns {Drawing}
 */
export function changed(drawing, { changed: news, keys, ...rest }) {
  const known = new Map(drawing.elements.map((element) => [element.key, element]));
  for (const element of news) known.set(element.key, element);
  const order = keys ?? drawing.elements.map(({ key }) => key);
  return { ...rest, elements: order.flatMap((key) => known.get(key) ?? []) };
}

export class Picture extends Player {
  /** @param {Model} model @param {Element} host */
  constructor(model, host) {
    super(model, host, "picture", ["drawing"]);
    const { plot, root, svg } = this.page;
    /** @type {Keyed<Drawn, Shown>} */
    this.elements = new Keyed(add(svg, "g"), (parent, { tag }) => add(parent, tag));
    this.brush = add(svg, "rect", { class: "sq-brush", hidden: true });
    this.text = add(root, "p", { class: "sq-text" });
    this.asked = 0;
    this.calm.addEventListener("change", this.onChange, { signal: this.stopped.signal });
    plot.addEventListener("click", (event) => this.choose(targetOf(event)));
    plot.addEventListener("keydown", (event) => { if (event.key === "Enter") this.choose(targetOf(event)); });
    this.drag();
  }

  // ---- selection and brush

  /** @param {Element} target */
  choose(target) {
    const subject = target.closest("[data-about]")?.getAttribute("data-about")?.split("\n")[0];
    if (subject) this.send("select", subject === this.model.get("selection") ? "" : subject);
  }
  // A drag over the time axis goes to the time where it ends. Its axis is that of its beginning: the picture of an
  // earlier moment may have another one, and the time under a resting pointer must not change.
  drag() {
    const { plot } = this.page;
    /** @type {{ from: number, area: Brush, width: number } | null} */
    let begun = null;
    /** @param {PointerEvent} event @param {number} width */
    const at = (event, width) => {
      const box = plot.getBoundingClientRect();
      return ((event.clientX - box.left) * width) / box.width;
    };
    plot.addEventListener("pointerdown", (event) => {
      const { brush: area, width } = this.model.get("drawing"), from = at(event, width);
      if (!area || from < area.left || from > area.right) return;
      begun = { from, area, width };
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      if (begun === null) return;
      const { from, area, width } = begun, to = clamp(at(event, width), area.left, area.right);
      put(this.brush, { hidden: false, x: Math.min(from, to), y: area.top, width: Math.abs(to - from), height: area.bottom - area.top });
      this.send("seek_time", this.timeAt(to, area));
    });
    plot.addEventListener("pointerup", (event) => {
      if (begun !== null) this.send("seek_time", this.timeAt(at(event, begun.width), begun.area));
      begun = null;
      put(this.brush, { hidden: true });
    });
    plot.addEventListener("pointercancel", () => { begun = null; put(this.brush, { hidden: true }); });
  }
  /** @param {number} x @param {Brush} area */
  timeAt(x, area) {
    const axis = this.model.get("axis"), share = (clamp(x, area.left, area.right) - area.left) / Math.max(area.right - area.left, 1);
    return clamp(Math.round(area.from_ms + share * (area.to_ms - area.from_ms)), axis.start_ms, axis.end_ms);
  }

  // ---- drawing

  /** @override */
  take() {
    const { model } = this;
    if (this.width !== this.asked && this.visible) { // Python lays the picture out for the width that it has here
      this.asked = this.width;
      if (model.get("width") !== this.width) this.send("width", this.width);
    }
  }
  /** @override */
  draw() {
    const { model, page } = this, drawing = model.get("drawing"), selection = model.get("selection");
    put(page.svg, { viewBox: `0 0 ${drawing.width} ${drawing.height}`, "aria-label": drawing.text, hidden: !drawing.height });
    page.svg.style.width = "100%";
    page.svg.style.height = "auto";
    setText(this.text, drawing.text);
    const known = new Set(this.elements.nodes.keys()), subjects = new Set();
    let drawn = 0;
    this.elements.show(drawing.elements, ({ key }) => key, (node, element) => {
      const face = JSON.stringify(element);
      if (face !== node.face) {
        this.put(node, element);
        drawn++;
      }
      node.face = face;
      const [first] = element.about ?? [], leads = first && !subjects.has(first);
      if (leads) subjects.add(first);
      node.classList.toggle("sq-selected", Boolean(selection && element.about?.includes(selection)));
      put(node, { tabindex: leads ? 0 : null, role: leads ? "button" : null, "aria-label": leads ? element.title ?? element.text ?? first : null });
      if (element.along && known.size && !known.has(element.key) && !this.calm.matches) travel(node, element.along);
    });
    put(page.svg, { class: this.calm.matches || drawn > MOTIONS ? "" : "sq-moving" });
    this.elements.arrange(drawing.elements.map(({ key }) => key));
  }
  /** @param {Shown} node @param {Drawn} element */
  put(node, element) {
    const { attributes, style = "", rates, text = "", title, about } = element;
    node.drawn = element;
    for (const name of node.getAttributeNames()) if (!(name in attributes) && name !== "style") node.removeAttribute(name);
    for (const [name, value] of Object.entries(attributes)) put(node, { [name]: PAINTS.includes(name) ? paint(value, this.id) : value });
    const classes = style.split(" ").filter(Boolean).map((one) => `sq-${one}`);
    put(node, { class: [...classes, ...(rates ? ["sq-running"] : [])].join(" "), "data-key": element.key, "data-about": about?.join("\n") });
    if (element.tag === "text") { // x and y of a text are no properties that a browser moves smoothly
      node.style.transform = `translate(${attributes.x}px, ${attributes.y}px)`;
      put(node, { x: null, y: null });
      setLabel(node, text);
    }
    const known = node.querySelector("title");
    if (known && title) setText(known, title);
    else if (title) add(node, "title", {}, title);
    else known?.remove();
  }
  /** @override @param {number} now */
  drawTime(now) {
    const passed = now - this.model.get("drawing").now_ms;
    for (const node of this.elements.nodes.values()) {
      const { rates, countdown, countup, attributes, text = "{}" } = /** @type {Drawn} */ (node.drawn);
      if (rates) {
        /** @param {string} name */
        const at = (name) => Number(attributes[name]) + (rates[name] ?? 0) * passed;
        if (node.tagName === "text") node.style.transform = `translate(${at("x")}px, ${at("y")}px)`;
        else for (const name of Object.keys(rates)) put(node, { [name]: SIZES.includes(name) ? Math.max(at(name), 0) : at(name) });
      }
      if (countdown !== undefined) setLabel(node, seconds(countdown - now));
      if (countup !== undefined) setLabel(node, (text || "{}").replace("{}", seconds(now - countup)));
    }
  }
}

/**
 * The stops of a path, relative to its end. It is measured outside of the page: inside, each measurement would lay out
 * all that has changed in this frame. The elements of a token share one path.
 * @param {string} d @returns {{ x: number, y: number }[]}
 */
function stopsOf(d) {
  const known = courses.get(d);
  if (known) return known;
  const path = /** @type {SVGPathElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "path"));
  path.setAttribute("d", d);
  const length = path.getTotalLength(), end = path.getPointAtLength(length);
  const stops = Array.from({ length: STOPS + 1 }, (_, stop) => {
    const at = path.getPointAtLength((length * stop) / STOPS);
    return { x: at.x - end.x, y: at.y - end.y };
  });
  if (courses.size > COURSES) courses.clear();
  courses.set(d, stops);
  return stops;
}

/**
 * Let a new element travel along a path to its place, which is the path's end.
 * @param {SVGElement} node @param {string} d
 */
function travel(node, d) {
  const base = node.style.transform, frames = stopsOf(d).map(({ x, y }) => ({ transform: `translate(${x}px, ${y}px) ${base}` }));
  node.animate(frames, { duration: TRAVEL_MS, easing: "ease-in-out" });
}

export default {
  /** @param {{ model: Model }} context */
  initialize({ model }) { keepWhole(model, { snapshot: apply, drawing: changed }); },
  /** @param {{ model: Model, el: HTMLElement }} context */
  render({ model, el }) {
    const picture = new Picture(model, el);
    return () => picture.close();
  },
};
