// A picture of a group in the browser: it draws the elements that Python describes, and decides nothing about them.
// An element with a known key moves to its new place; attributes with a rate run with the displayed time.

/** @import { Brush, Element as Drawn, Model } from "./types.d.ts" */

import { keepWhole } from "./changes.js";
import { Keyed, add, clamp, put, seconds, setLabel, setText, setTitle } from "./draw.js";
import { Player, targetOf } from "./player.js";
import { explained } from "./terms.js";
import { isWhole } from "./timeline.js";

const LARGEST = 1.3; // the scale of a saved picture in a wider place
const DRAG = 5; // a pointer that moves less than this has clicked, px
const TRAVEL_MS = 600; // along a path
const STOPS = 16; // points of a path that are stops of the journey
const PAINTS = ["fill", "stroke", "marker-end"];
const SIZES = ["width", "height", "r"]; // never negative
const PATTERNS = ["hatch", "dots", "veil", "arrow", "hot-arrow"];

const MOTIONS = 80; // with more elements changing at once none of them moves smoothly
const COURSES = 100; // measured paths that are kept

/** @type {Map<string, { x: number, y: number }[]>} */
const courses = new Map();

/**
 * An element of the page, what it was drawn for, its tooltip, if it is the first one about its subject, and if it is
 * marked.
 * @typedef {SVGElement & { drawn?: Drawn, tip?: string, leads?: boolean, marked?: boolean }} Shown
 */

/** @param {unknown} value @param {string} id */
const paint = (value, id) => (value === "none" ? "none" : PATTERNS.includes(String(value)) ? `url(#${id}-${value})` : `var(--sq-${value})`);

class Picture extends Player {
  /** @param {Model} model @param {Element} host */
  constructor(model, host) {
    super(model, host, "picture", ["drawing"]);
    const { plot, root, svg } = this.page;
    /** @type {Keyed<Drawn, Shown>} */
    this.elements = new Keyed(add(svg, "g"), (parent, { tag }) => add(parent, tag));
    this.brush = add(svg, "rect", { class: "sq-brush", hidden: true });
    this.text = add(root, "p", { class: "sq-text" });
    this.drawing = model.get("drawing"); // that of the drawn moment
    this.laid = 0; // the width that the drawn picture was made for: nothing moves to another layout
    this.asked = 0;
    this.chosen = ""; // a subject that a click here has selected, until what it reveals is drawn
    this.calm.addEventListener("change", this.onChange, { signal: this.stopped.signal });
    plot.addEventListener("click", (event) => this.choose(targetOf(event)));
    plot.addEventListener("keydown", (event) => {
      const target = targetOf(event), isButton = target.hasAttribute("data-part");
      if (event.key !== "Enter" && !(event.key === " " && isButton)) return;
      if (isButton) { event.preventDefault(); event.stopPropagation(); } // a space plays elsewhere
      this.choose(target);
    });
    this.drag();
  }

  // ---- selection and brush

  /** @param {Element} target */
  choose(target) {
    const part = target.closest("[data-part]")?.getAttribute("data-part");
    if (part) { this.send("part", part); return; }
    const subject = target.closest("[data-about]")?.getAttribute("data-about")?.split("\n")[0];
    if (!subject) return;
    this.chosen = subject === this.model.get("selection") ? "" : subject;
    this.send("select", this.chosen);
  }
  // A drag over the time axis goes to the time where it ends, and shows the dragged time on all time axes; a click shows
  // all of it. Its axis is that of its beginning: the picture of an
  // earlier moment may have another one, and the time under a resting pointer must not change.
  drag() {
    const { plot, svg } = this.page;
    /** @type {{ from: number, area: Brush, width: number } | null} */
    let begun = null;
    /** @param {PointerEvent} event @param {number} width */
    const at = (event, width) => {
      const box = svg.getBoundingClientRect();
      return ((event.clientX - box.left) * width) / box.width;
    };
    plot.addEventListener("pointerdown", (event) => {
      const { brush: area, width } = this.drawing, from = at(event, width);
      if (!area || from < area.left || from > area.right) return;
      begun = { from, area, width };
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      if (begun == null) return;
      const { from, area, width } = begun, to = clamp(at(event, width), area.left, area.right);
      put(this.brush, { hidden: false, x: Math.min(from, to), y: area.top, width: Math.abs(to - from), height: area.bottom - area.top });
      this.send("seek_time", this.timeAt(to, area));
    });
    plot.addEventListener("pointerup", (event) => {
      if (begun != null) {
        const { from, area, width } = begun, to = at(event, width), times = [from, to].map((x) => this.timeAt(x, area)).sort((a, b) => a - b);
        if (Math.abs(to - from) >= DRAG && times[1] > times[0]) this.send("zoom", times);
        else if (!isWhole(this.model.get("axis"))) this.send("zoom");
        this.send("seek_time", this.timeAt(to, area));
      }
      begun = null;
      put(this.brush, { hidden: true });
    });
    plot.addEventListener("pointercancel", () => { begun = null; put(this.brush, { hidden: true }); });
  }
  /** @param {number} x @param {Brush} area */
  timeAt(x, area) {
    const { from_ms, to_ms } = area, { first_ms, last_ms } = this.model.get("axis"), share = (clamp(x, area.left, area.right) - area.left) / Math.max(area.right - area.left, 1);
    return clamp(Math.round(from_ms + share * (to_ms - from_ms)), first_ms, last_ms);
  }

  // ---- drawing

  /** @override */
  take() {
    const { model } = this;
    this.drawing = model.get("drawing");
    if (this.width !== this.asked && this.visible) { // Python lays the picture out for the width that it has here
      const known = this.asked || model.get("width"); // what was asked for is on its way: the model may not have it yet
      this.asked = this.width;
      if (known !== this.width) this.send("width", this.width);
    }
  }
  /** @override */
  draw() {
    const { drawing, model, page } = this, selection = model.get("selection");
    put(page.svg, { viewBox: `0 0 ${drawing.width} ${drawing.height}`, "aria-label": drawing.text, hidden: !drawing.height });
    // Until Python has laid it out for a new width, the picture has the scale that it was made for, or fits the place.
    const width = this.asked && model.get("width") !== undefined ? `${drawing.width}px` : "100%";
    Object.assign(page.svg.style, { width, maxWidth: `min(100%, ${LARGEST * drawing.width}px)` });
    page.svg.style.height = "auto";
    setText(this.text, drawing.text);
    const known = new Set(this.elements.nodes.keys()), subjects = new Set();
    let drawn = 0;
    this.elements.show(drawing.keys.map((key) => drawing.elements[key]), ({ key }) => key, (node, element) => {
      if (element !== node.drawn) { // an element that has not changed is the same object
        this.put(node, element);
        drawn++;
      }
      const [first] = element.about ?? [], leads = Boolean(first) && !subjects.has(first);
      if (leads) subjects.add(first);
      const marked = Boolean(selection && element.about?.includes(selection));
      if (marked !== node.marked) node.classList.toggle("sq-selected", node.marked = marked);
      if (leads !== node.leads) this.name(node, element, leads);
      if (element.along && known.size && !known.has(element.key) && !this.calm.matches) travel(node, element.along);
    });
    const still = this.calm.matches || drawn > MOTIONS || drawing.width !== this.laid;
    put(page.svg, { class: still ? "" : "sq-moving" });
    this.laid = drawing.width;
    this.elements.arrange(drawing.keys);
    this.reveal();
  }
  // Scroll to what a click has made appear.
  reveal() {
    for (const node of this.elements.nodes.values()) {
      if (!this.chosen || !node.drawn?.reveal || !node.drawn.about?.includes(this.chosen)) continue;
      this.chosen = "";
      node.scrollIntoView({ block: "nearest", behavior: this.calm.matches ? "auto" : "smooth" });
    }
  }
  // The first element about a subject, and a button, can be reached with the keyboard, and have a name.
  /** @param {Shown} node @param {Drawn} element @param {boolean} leads */
  name(node, { pressed, title, text, about }, leads) {
    const named = leads || pressed !== undefined;
    node.leads = leads;
    put(node, {
      tabindex: named ? 0 : null, role: named ? "button" : null, "aria-label": named ? title ?? text ?? about?.[0] : null,
      "aria-pressed": pressed === undefined ? null : String(pressed),
    });
  }
  // Only what differs from the element that the node was drawn for: a page reads and writes attributes slowly.
  /** @param {Shown} node @param {Drawn} element */
  put(node, element) {
    const { attributes, tag, style = "", rates, text = "", title, about } = element, before = node.drawn, old = before?.attributes ?? {};
    node.drawn = element;
    node.leads = node.marked = undefined;
    for (const name of Object.keys(old)) if (!(name in attributes)) node.removeAttribute(name);
    for (const [name, value] of Object.entries(attributes)) {
      const moved = tag === "text" && (name === "x" || name === "y"); // of a text no property that a browser moves smoothly
      if (!moved && (value !== old[name] || before?.rates?.[name] !== undefined)) node.setAttribute(name, String(PAINTS.includes(name) ? paint(value, this.id) : value));
    }
    if (tag === "text") {
      node.style.transform = `translate(${attributes.x}px, ${attributes.y}px)`;
      setLabel(node, text);
    }
    const classes = style.split(" ").filter(Boolean).map((one) => `sq-${one}`);
    put(node, { class: [...classes, ...(rates ? ["sq-running"] : [])].join(" "), "data-key": element.key, "data-about": about?.join("\n"), "data-part": element.part });
    const tip = explained(text, title);
    if (tip !== (node.tip ?? "")) setTitle(node, tip);
    node.tip = tip;
  }
  /** @override @param {number} now */
  drawTime(now) {
    const passed = now - this.drawing.now_ms;
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
  initialize({ model }) { keepWhole(model); },
  /** @param {{ model: Model, el: HTMLElement }} context */
  render({ model, el }) {
    const picture = new Picture(model, el);
    return () => picture.close();
  },
};
