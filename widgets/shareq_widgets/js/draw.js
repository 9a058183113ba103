// Reading and drawing of a share-partition: pure functions of a snapshot, and small tools for the page.
// Colours, sizes and shapes come from Python (`palette`, `look`); offsets are half-open ranges, as there.

/** @import { Attribute, Box, Cell, Colours, ElementOf, Look, Run, Shape, Snapshot } from "./types.d.ts" */

import { explained } from "./terms.js";

const NS = "http://www.w3.org/2000/svg";
const WIDE = 4; // the width from which a run has a block of its own, px
const LEAST = 0.01; // a part of a pixel that is not drawn: the error of a float

// ---- small tools -------------------------------------------------------------------------------------------------

/** @param {number} value @param {number} low @param {number} high */
export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
/**
 * The number of leading values that are at most `limit`, of values in order.
 * @template Value @param {Value[]} values @param {number} limit @param {(value: Value) => number} of
 */
export function upTo(values, limit, of = Number) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(values[middle]) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
/** @param {number} t */
export const ease = (t) => 1 - (1 - t) ** 3;
/** @param {number} n @param {number} digits */
const pad = (n, digits) => String(n).padStart(digits, "0");
/** @param {number} first @param {number} end */
export const span = (first, end) => (end - first > 1 ? `${first}–${end - 1}` : `${first}`);
/** @param {number} ms */
export const seconds = (ms) => `${(Math.max(ms, 0) / 1000).toFixed(1)} s`;
/** A duration in words, as in shareq_widgets/time_scale.py, with tenths of a second. @param {number} ms */
export function durationText(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return seconds(ms);
  return ms < 3600000 ? `${Math.floor(ms / 60000)} min ${Math.floor(ms / 1000) % 60} s` : `${Math.floor(ms / 3600000)} h ${Math.floor(ms / 60000) % 60} min`;
}
/** @param {string} text */
const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

/** @param {number} ms */
export function clockText(ms) {
  const all = Math.max(Math.floor(ms), 0), hours = Math.floor(all / 3600000);
  const rest = `${pad(Math.floor(all / 60000) % 60, 2)}:${pad(Math.floor(all / 1000) % 60, 2)}.${pad(all % 1000, 3)}`;
  return hours ? `${hours}:${rest}` : rest;
}

/** @param {Element} node @param {Record<string, Attribute>} attributes */
export function put(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    const text = value === true ? "" : String(value);
    if (value == null || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== text) node.setAttribute(name, text);
  }
}

/**
 * @template {string} Tag
 * @param {Element} parent
 * @param {Tag} tag
 * @param {Record<string, Attribute>} attributes
 * @param {string | null} text
 */
export function add(parent, tag, attributes = {}, text = null) {
  const node = parent.namespaceURI === NS || tag === "svg" ? document.createElementNS(NS, tag) : document.createElement(tag);
  put(node, attributes);
  if (text != null) node.textContent = text;
  parent.append(node);
  return /** @type {ElementOf<Tag>} */ (/** @type {unknown} */ (node));
}

/** @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** The text of an element that may also have a tooltip. @param {Element} node @param {string} text */
export function setLabel(node, text) {
  if (!(node.firstChild instanceof Text)) node.prepend("");
  if (node.firstChild && node.firstChild.nodeValue !== text) node.firstChild.nodeValue = text;
}

/** The tooltip of an element of a picture: an open one is that of the same title element. @param {Element} node @param {string} title */
export function setTitle(node, title) {
  const shown = node.querySelector("title");
  if (!title) shown?.remove();
  else setText(shown ?? add(node, "title"), title);
}

/**
 * One node per key: nodes of known keys are moved and not replaced, so nothing blinks.
 * @template Item
 * @template {Element} Kept
 */
export class Keyed {
  /** @param {Element} parent @param {(parent: Element, item: Item) => Kept} make */
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    /** @type {Map<string | number, Kept>} */
    this.nodes = new Map();
  }
  /** Bring the nodes into the order of their keys. @param {(string | number)[]} keys */
  arrange(keys) {
    keys.forEach((key, place) => {
      const node = this.nodes.get(key), there = this.parent.children[place];
      if (node && node !== there) this.parent.insertBefore(node, there);
    });
  }
  /** @param {Item[]} items @param {(item: Item) => string | number} key @param {(node: Kept, item: Item) => void} update */
  show(items, key, update) {
    const seen = new Set();
    for (const item of items) {
      const name = key(item), node = this.nodes.get(name) ?? this.make(this.parent, item);
      seen.add(name);
      this.nodes.set(name, node);
      update(node, item);
    }
    for (const [name, node] of this.nodes) {
      if (seen.has(name)) continue;
      node.remove();
      this.nodes.delete(name);
    }
  }
}

// ---- reading a snapshot ------------------------------------------------------------------------------------------

export const FIRST = 0, END = 1, STATE = 2, COUNT = 3, MEMBER = 4, DEADLINE = 5, WRITE = 6, TO = 7; // fields of a run

/** @param {Run} run @returns {number} */
const endOf = (run) => run[END];
/** Index of the first run that ends above the offset. @param {Run[]} runs @param {number} offset */
export const runIndex = (runs, offset) => upTo(runs, offset, endOf);

/** @param {Run[]} runs @param {number} offset */
export function runAt(runs, offset) {
  const run = runs[runIndex(runs, offset)];
  return run && run[FIRST] <= offset ? run : null;
}

/** @param {Snapshot} snap @param {number} offset @returns {Cell} */
export function cellAt(snap, offset) {
  const inside = offset >= snap.spso && offset < snap.window_end;
  const run = inside ? runAt(snap.runs, offset) : offset < snap.spso ? runAt(snap.past, offset) : null;
  if (run) return { offset, kind: inside ? "run" : "past", run };
  return { offset, kind: offset >= snap.window_end && offset < snap.log_end ? "beyond" : "dash", run: null };
}

/** @param {Snapshot} snap @param {Run | null} run */
export const memberOf = (snap, run) => snap.members.find((member) => member.id === run?.[MEMBER]);
/** @param {Snapshot} snap @param {Run} run */
const lastAttempt = (snap, run) => run[STATE] === "acquired" && run[COUNT] >= snap.delivery_count_limit;

// In an observed share-partition no record is known to be available.
/** @type {Record<string, string>} */
const UNKNOWN = { unknown: "unknown: available, or held by an unknown member", returned: "returned: available again, or held by an unknown member" };
/** @param {string | null} fill */
const patterned = (fill) => fill != null && ["hatch", "dots", "veil"].includes(fill);

/** The name of a member with its letter, which may be its name. @param {Snapshot["members"][number]} member */
export const named = ({ name, letter }) => (name === letter ? name : `${name} (${letter})`);

/** The text of the tooltip of an offset. @param {Snapshot} snap @param {Cell} cell @param {number} now */
export function describe(snap, cell, now) {
  const { offset, run } = cell;
  if (!run) {
    const place = offset < snap.log_start ? "below the log start" : offset >= snap.log_end ? "not written yet" :
      cell.kind === "beyond" ? (snap.observed ? "above what the locks can reach: not known" : "above the window, not fetched yet") : offset < snap.spso ? "done, below the SPSO" : "a gap: no record";
    return `offset ${offset}\n${place}`;
  }
  const holder = memberOf(snap, run), lines = [`offset ${offset}${run[END] - run[FIRST] > 1 ? `, in ${span(run[FIRST], run[END])}` : ""}`];
  lines.push((UNKNOWN[run[STATE]] ?? run[STATE]) + (run[MEMBER] ? ` by ${holder ? named(holder) : "an unknown member"}` : ""));
  if (run[COUNT]) lines.push(`delivery ${run[COUNT]} of ${snap.delivery_count_limit}${lastAttempt(snap, run) ? ", the last attempt" : ""}`);
  if (run[DEADLINE]) lines.push(`${seconds(run[DEADLINE] - now)} of lock left`);
  if (run[TO]) lines.push(`write ${run[WRITE]} under way: will be ${run[TO]}`);
  return lines.join("\n");
}

// ---- pictures of single things -----------------------------------------------------------------------------------

/** @param {string} name */
export const paint = (name) => `var(--sq-${name})`;

/**
 * One cell as markup, its corner at 0,0. strip_picture.py draws the same cell from the same shapes.
 * @param {Cell} cell @param {Snapshot} snap @param {Look} look @param {number} pitch @param {string} hatch
 */
export function cellMarkup(cell, snap, look, pitch, hatch) {
  const { sizes, shapes } = look, w = pitch - sizes.gap, h = sizes.cell_height, run = cell.run;
  const box = `<rect width="${w}" height="${h}" rx="6"`;
  if (cell.kind === "dash") return `<path d="M${w / 2 - 3} ${h / 2}h6" stroke="${paint("line")}" stroke-width="2"/>`;
  if (!run) return `${box} fill="none" stroke="${paint("line")}" stroke-width="1.2" stroke-dasharray="3 3"/>`;
  const shape = shapes[run[STATE]], fill = patterned(shape.fill) ? `url(#${hatch}-${shape.fill})` : shape.fill ? paint(shape.fill) : "none";
  const ring = `<rect x="-2" y="-2" width="${w + 4}" height="${h + 4}" rx="8" fill="none"`;
  return `${box} fill="${fill}" stroke="${paint(shape.stroke)}" stroke-width="${shape.width}"/>` +
    glyphMarkup(run, snap, look, w) + stripeMarkup(snap, run, look, w) + countMarkup(run, snap.delivery_count_limit, look, pitch) +
    (lastAttempt(snap, run) ? `${ring} stroke="${paint("alarm")}" stroke-width="2.2"/>` : "") +
    (run[TO] ? `${ring} stroke="${paint("ink")}" stroke-width="1.4" stroke-dasharray="4 3"/>` : "");
}

/**
 * The state's shape. An acquired cell shows its holder or, dashed, the target state of a write under way.
 * @param {Run} run @param {Snapshot} snap @param {Look} look @param {number} w
 */
function glyphMarkup(run, snap, { sizes, shapes }, w) {
  const shape = shapes[run[TO] ?? run[STATE]], ink = paint(shapes[run[STATE]].ink);
  if (!shape.glyph) {
    const letter = memberOf(snap, run)?.letter ?? "?";
    const size = Math.min(sizes.letter, Math.max(w / (0.75 * letter.length), sizes.letter / 2));
    return `<text class="sq-glyph" x="${w / 2}" y="${sizes.glyph + 5}" text-anchor="middle" style="fill:${ink};font-size:${size}px">${escape(letter)}</text>`;
  }
  const line = run[TO] ? 'stroke-width="1.7" stroke-dasharray="2.5 2"' : 'stroke-width="2.4"';
  const scale = Math.min((w - 2 * shapes[run[STATE]].width) / sizes.glyph_width, 1);
  return `<g transform="translate(${w / 2} ${sizes.glyph}) scale(${scale})"><path class="sq-glyph" d="${shape.glyph}" fill="none" stroke="${ink}" stroke-linecap="round" ${line}/></g>`;
}

/**
 * The holder's colour, beside its letter.
 * @param {Snapshot} snap @param {Run} run @param {Look} look @param {number} w
 */
function stripeMarkup(snap, run, { sizes }, w) {
  const holder = run[STATE] === "acquired" ? memberOf(snap, run) : undefined;
  return holder ? `<rect x="3" y="${sizes.cell_height - sizes.stripe - 2}" width="${w - 6}" height="${sizes.stripe}" rx="1.5" fill="${paint(holder.colour)}"/>` : "";
}

/**
 * The delivery count as pips of the limit, or as a number where pips would not be legible.
 * @param {Run} run @param {number} limit @param {Look} look @param {number} pitch
 */
function countMarkup(run, limit, { sizes, shapes }, pitch) {
  const w = pitch - sizes.gap, y = sizes.cell_height - sizes.pips, solid = shapes[run[STATE]].ink === "onfill";
  if (run[STATE] === "unknown") return "";
  const ink = paint(solid ? "onfill" : "ink"), space = Math.min(5, (w - 8) / Math.max(limit - 1, 1));
  if (pitch < sizes.pitch_pips || space < 3) {
    return `<text x="${w / 2}" y="${y + 3}" text-anchor="middle" style="fill:${ink};font-size:10px">${run[COUNT]}</text>`;
  }
  const start = w / 2 - (space * (limit - 1)) / 2, r = Math.min(1.9, space * 0.4);
  /** @param {unknown} _ @param {number} i */
  const pip = (_, i) => `<circle cx="${start + i * space}" cy="${y}" r="${r}" ` +
    (i < run[COUNT] ? `fill="${ink}"/>` : `fill="none" stroke="${ink}" stroke-width=".6"/>`);
  return Array.from({ length: limit }, pip).join("");
}

/**
 * Blocks: the form of runs where cells are illegible. Height stands for the state as well as colour. Narrow runs share
 * columns of one pixel, in which each state is as high as its share: cost follows pixels, not runs. blocks.py has the
 * same rules for pictures.
 * @param {CanvasRenderingContext2D} ctx @param {Snapshot} snap @param {(offset: number) => number} x
 * @param {{ top: number, height: number, first: number, end: number }} box the offsets from `first` to `end`
 * @param {Colours} colours @param {Look["shapes"]} shapes @param {boolean} detail
 */
export function drawBlocks(ctx, snap, x, box, colours, shapes, detail) {
  const last = runIndex(snap.runs, box.end), { top, height } = box;
  /** @type {Map<string, number>} */
  const shares = new Map();
  /** @type {[Run, Box][]} */
  const marked = [];
  let column = NaN, dense = false; // a run is narrower than the column
  /** @param {number} place */
  const moveTo = (place) => {
    if (place === column) return;
    drawColumn(ctx, shares, dense, { left: column, top, width: 1, height }, colours, shapes);
    shares.clear();
    dense = false;
    column = place;
  };
  for (let i = runIndex(snap.runs, box.first); i <= last && i < snap.runs.length; i++) {
    const run = snap.runs[i], left = x(run[FIRST]), right = x(run[END]), width = right - left;
    if (width >= WIDE) {
      moveTo(NaN);
      const shape = shapes[run[STATE]], at = { left, top, width: width - (width > WIDE ? 1 : 0), height };
      drawBlock(ctx, shape, raised(at, shape.block), colours);
      if (detail) marked.push([run, at]);
      continue;
    }
    for (let place = Math.floor(left); place < right; place++) {
      const part = Math.min(right, place + 1) - Math.max(left, place);
      moveTo(place);
      if (part <= LEAST) continue;
      shares.set(run[STATE], (shares.get(run[STATE]) ?? 0) + part);
      dense ||= width < 1;
    }
    if (detail && (lastAttempt(snap, run) || (run[TO] && width >= 1))) marked.push([run, { left, top, width, height }]);
  }
  moveTo(NaN);
  for (const [run, at] of marked) drawDetail(ctx, run, snap, shapes[run[STATE]], at, colours);
}

/** The lower part of a box. @param {Box} at @param {number} part @returns {Box} */
const raised = (at, part) => ({ ...at, top: at.top + at.height * (1 - part), height: at.height * part });

/**
 * A column inside a run is as high as its block; others have the shares above each other, the hollow ones pale.
 * @param {CanvasRenderingContext2D} ctx @param {Map<string, number>} shares @param {boolean} dense @param {Box} at
 * @param {Colours} colours @param {Look["shapes"]} shapes
 */
function drawColumn(ctx, shares, dense, at, colours, shapes) {
  let { height } = at;
  const whole = [...shares.values()].reduce((sum, share) => sum + share, 0);
  for (const [state, shape] of Object.entries(shapes).reverse()) { // what is done lies below, what waits above
    const share = shares.get(state), part = share ? at.height * share / whole : 0;
    if (part && shares.size === 1 && !dense) drawBlock(ctx, shape, raised(at, shape.block), colours);
    else if (part) fillBlock(ctx, shape, { ...at, top: at.top + height - part, height: part }, colours);
    height -= part;
  }
}

/** @param {CanvasRenderingContext2D} ctx @param {Shape} shape @param {Box} at @param {Colours} colours */
function drawBlock(ctx, shape, at, colours) {
  if (shape.fill) fillBlock(ctx, shape, at, colours);
  else {
    ctx.fillStyle = colours[shape.stroke]; // hollow: a roof and a floor, and walls where there is room
    ctx.fillRect(at.left, at.top, at.width, 2);
    ctx.fillRect(at.left, at.top + at.height - 2, at.width, 2);
    if (at.width < 6) return;
    ctx.fillRect(at.left, at.top, 1.5, at.height);
    ctx.fillRect(at.left + at.width - 1.5, at.top, 1.5, at.height);
  }
}

/** @param {CanvasRenderingContext2D} ctx @param {Shape} shape @param {Box} at @param {Colours} colours */
function fillBlock(ctx, shape, at, colours) {
  ctx.fillStyle = colours[shape.stroke];
  ctx.globalAlpha = !shape.fill ? 0.3 : patterned(shape.fill) ? 0.75 : 1;
  ctx.fillRect(at.left, at.top, at.width, at.height);
  ctx.globalAlpha = 1;
}

/** The mark of a last attempt. @param {CanvasRenderingContext2D} ctx @param {Box} at @param {Colours} colours */
function drawRoof(ctx, at, colours) {
  ctx.fillStyle = colours.alarm;
  ctx.fillRect(at.left, at.top - 4, Math.max(at.width, 2), 3);
}

/**
 * Marks on a block: last attempt (alarm roof), write under way (dashed roof), and glyph or letter if it is wide enough.
 * @param {CanvasRenderingContext2D} ctx @param {Run} run @param {Snapshot} snap @param {Shape} shape @param {Box} at
 * @param {Colours} colours
 */
function drawDetail(ctx, run, snap, shape, at, colours) {
  if (lastAttempt(snap, run)) drawRoof(ctx, at, colours);
  if (run[TO]) {
    ctx.strokeStyle = colours.ink;
    ctx.setLineDash([4, 3]);
    ctx.strokeRect(at.left + 0.5, at.top + 0.5, Math.max(at.width - 1, 1), at.height - 1);
    ctx.setLineDash([]);
  }
  if (at.width < (shape.glyph ? 20 : 16) || shape.block < 0.5) return;
  const middle = at.left + at.width / 2, y = at.top + at.height * (shape.block < 1 ? 0.7 : 0.5);
  ctx.save();
  ctx.translate(middle, y);
  ctx.strokeStyle = ctx.fillStyle = colours[shape.ink];
  ctx.lineWidth = 2;
  if (shape.glyph) ctx.stroke(new Path2D(shape.glyph));
  else ctx.fillText(memberOf(snap, run)?.letter ?? "?", 0, 5);
  ctx.restore();
}

/**
 * The context of a canvas as large as asked, sharp on any screen, cleared.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 */
export function canvasOf(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, w = Math.round(width * ratio), h = Math.round(height * ratio);
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  Object.assign(canvas, { width: w, height: h }); // this also clears it, and resets clip and styles
  const ctx = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  ctx.scale(ratio, ratio);
  return ctx;
}

/** @param {string[]} states @param {Look} look @param {Snapshot} snap @param {boolean} cells */
export function legendMarkup(states, look, snap, cells) {
  /** @param {string} state */
  const sign = (state) => {
    const { glyph, fill, stroke, ink, block } = look.shapes[state], tint = paint(fill && ink === "onfill" ? fill : stroke);
    const box = fill ? `fill="${tint}"` : `fill="none" stroke="${tint}" stroke-width="2"`;
    const drawn = !cells ? `<rect x="3" y="${1 + 14 * (1 - block)}" width="10" height="${14 * block}" ${box}/>`
      : glyph ? `<path d="${glyph}" transform="translate(8 8) scale(.85)" fill="none" stroke="${tint}" stroke-width="2.4" stroke-linecap="round"/>`
      : `<rect x="2" y="2" width="12" height="12" rx="3" ${box}/>`;
    return `<svg width="16" height="16" aria-hidden="true">${drawn}</svg>${escape(state)}${cells && !glyph ? ", by its holder’s letter" : ""}`;
  };
  const rest = snap.observed ? ["returned, unknown: available, or held by an unknown member", cells ? "●●○○○ deliveries of the limit" : "height: the state, or its share", "bars: records held by a member"]
    : cells ? ["dashed: state write under way", "●●○○○ deliveries of the limit", "bars: lock time left"]
    : ["height: the state, or its share", "a line on top: the last attempt", "bars: lock time left", "zoom in for single records"];
  const named = [...states.map((state) => [state, sign(state)]), ...rest.map((text) => [text, text])];
  return named.map(([text, shown]) => `<span title="${escape(explained(text))}">${shown}</span>`).join("");
}
