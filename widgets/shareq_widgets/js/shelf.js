// The shelf of a view: buttons that save what is shown as a file, or copy it as a line of Python. Python makes both.

/** @import { Kept } from "./types.d.ts" */

import { Keyed, add, put, setText } from "./draw.js";

const KEEP_MS = 60_000; // a browser reads a file while it is being saved
/** @type {Record<string, [text: string, title: string]>} */
const FORMS = {
  png: ["picture (PNG)", "save the shown moment as a PNG picture"],
  svg: ["picture (SVG)", "save the shown moment as an SVG picture"],
  html: ["page that plays", "save a page (HTML) that plays the recording without Python and without a network"],
  state: ["copy state", "copy the line of Python that shows the same moment again"],
};

/** @param {string} file @param {string} type @param {DataView} content */
function download(file, type, content) {
  const url = URL.createObjectURL(new Blob([/** @type {DataView<ArrayBuffer>} */ (content)], { type }));
  const link = add(document.body, "a", { href: url, download: file, hidden: true });
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), KEEP_MS);
}

/** True if the text is in the clipboard. @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // not in a page of http, or not allowed
    return false;
  }
}

export class Shelf {
  /**
   * `ask` sends for a form, and returns the number of responses up to the one for it.
   * @param {Element} root @param {HTMLElement} opener @param {(form: string) => number} ask
   */
  constructor(root, opener, ask) {
    this.awaited = 0;
    this.opener = opener;
    this.host = add(root, "div", { class: "sq-shelf", role: "group", "aria-label": "save", hidden: true });
    /** @type {Keyed<string, HTMLElement>} */
    this.buttons = new Keyed(add(this.host, "span", { class: "sq-forms" }), (parent, form) => {
      const [text, title] = FORMS[form], made = add(parent, "button", { type: "button", title, "data-keep": form }, text);
      made.addEventListener("click", () => {
        this.show("one moment …", "");
        this.awaited = ask(form);
      });
      return made;
    });
    const output = add(this.host, "output", { class: "sq-kept" });
    this.words = add(output, "span");
    this.code = add(output, "code", { hidden: true });
    put(opener, { "aria-expanded": "false" });
  }
  /** @param {string[]} forms those that there are buttons for */
  take(forms) {
    this.opener.hidden = !forms.length;
    this.buttons.show(forms, (form) => form, () => {});
  }
  toggle() {
    const open = this.host.hidden === true;
    this.host.hidden = !open;
    put(this.opener, { "aria-expanded": String(open), class: open && "sq-on" });
  }
  /** @param {string} words @param {string} line */
  show(words, line) {
    setText(this.words, words);
    setText(this.code, line);
    this.code.hidden = !line;
  }
  /** What Python has made, before its response. @param {Kept} kept @param {DataView[]} contents */
  async keep({ line = "", file, type, refusal }, [content]) {
    this.awaited = 0;
    if (refusal) this.show(refusal, "");
    else if (file && type) {
      download(file, type, content);
      this.show("saved; in Python:", line);
    } else this.show(await copied(line) ? "copied:" : "to copy:", line);
  }
  /** A response came. That for the form, if nothing was made: the sentence of the view has the reason. */
  answered() {
    if (this.awaited && !--this.awaited) this.show("", "");
  }
}
