// Names for screen readers: ipywidgets gives its sliders none. This widget shows nothing; it names what is beside it, and
// explains the terms there.

import { put } from "./draw.js";
import { explained } from "./terms.js";

const ROWS = ".sq-control, .widget-slider, .widget-play";
const TEXTS = ".sq-hint, .sq-story";
const NAMED = "[role=slider], .widget-readout, input, select, button";

/** The name of a row: its label, or its button. @param {Element} row */
function nameOf(row) {
  const named = row.matches(".sq-control") ? row.firstElementChild : row.querySelector(".widget-label");
  return named?.textContent?.trim() ?? "";
}

/** @param {Element} root */
function label(root) {
  for (const one of root.querySelectorAll(TEXTS)) put(one, { title: explained(one.textContent ?? "") || null });
  for (const row of root.querySelectorAll(ROWS)) {
    const name = nameOf(row);
    for (const one of row.querySelectorAll(NAMED)) {
      const text = one.tagName === "BUTTON" ? one.textContent?.trim() : "", whole = row.matches(".sq-subject") ? `${text} ${name}` : "";
      const own = text ? whole : one.getAttribute("title") || name; // "kill" beside "broker 0" is "kill broker 0"
      if (own && one.getAttribute("aria-label") == null) one.setAttribute("aria-label", own);
    }
  }
}

export default {
  /** @param {{ el: HTMLElement }} context */
  render({ el }) {
    el.hidden = true;
    const watch = new MutationObserver(() => name());
    const name = () => {
      const root = el.closest(".sq-labelled");
      if (root) label(root);
    };
    requestAnimationFrame(() => { // the widgets around this one are in the page by now
      const root = el.closest(".sq-labelled");
      if (root) watch.observe(root, { childList: true, subtree: true });
      name();
    });
    return () => watch.disconnect();
  },
};
