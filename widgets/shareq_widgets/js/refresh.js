// The pictures that a notebook stores beside its views: those of the end of a run, and of the moment when it is saved.
// A kernel that knows of such a page displays views without pictures, which takes it less time.
// They are written into the notebook and not into the page, so the views stay as they are. See shareq_widgets/refresh.py.

/** @import { Manager, Output, RefreshModel, Refreshed } from "./types.d.ts" */

const VIEW = "application/vnd.jupyter.widget-view+json";
const PICTURES = ["image/svg+xml", "image/png"];
const WHOLE = "picture-of-the-end"; // the tag of a cell whose views store the whole recording
const SILENT = "silent-change"; // JupyterLab draws no output anew for a change of this origin
const QUIET_MS = 500; // cells that run one after the other are one run
const ENDS = ["restarting", "autorestarting", "dead"];

/** A file may have a text as its lines. @param {string | string[] | undefined} data */
const text = (data) => (Array.isArray(data) ? data.join("") : data);

/** The outputs with views of widgets: cell, place, output, model, and whether the whole recording is stored. @param {Manager} manager */
function* shown({ context }) {
  for (const cell of context?.model.cells ?? []) {
    /** @type {Output[]} */
    const outputs = cell.sharedModel.getOutputs?.() ?? [];
    const whole = (cell.sharedModel.getMetadata("tags") ?? []).includes(WHOLE);
    for (const [place, output] of outputs.entries()) {
      const id = output.data?.[VIEW]?.model_id;
      if (id) yield { cell, place, output, id, whole };
    }
  }
}

/** Write pictures into the outputs of their views; true if one has changed. @param {Manager} manager @param {Refreshed[]} pictures */
function write(manager, pictures) {
  let written = false;
  for (const { cell, place, output, id, whole } of [...shown(manager)]) {
    const found = pictures.find((one) => one[0] === id && one[1] === whole);
    if (!found || PICTURES.every((type) => text(output.data?.[type]) === text(found[2][type]))) continue;
    const kept = Object.entries(output.data ?? {}).filter(([type]) => !PICTURES.includes(type));
    cell.sharedModel.updateOutputs(place, place + 1, [{ ...output, data: { ...Object.fromEntries(kept), ...found[2] } }], SILENT);
    written = true;
  }
  return written;
}

export default {
  /** @param {{ model: RefreshModel }} context */
  initialize({ model }) {
    const manager = model.widget_manager, { context, kernel } = manager;
    if (!context || !kernel) return undefined; // a page without a notebook
    let timer = 0, asked = false, again = false, saved = false, changed = false, own = false;
    const ask = () => {
      clearTimeout(timer);
      again = asked; // cells may have run since the question
      const wishes = asked ? new Map() : new Map([...shown(manager)].map(({ id, whole }) => [`${id} ${whole}`, [id, whole]]));
      if (!wishes.size) return;
      asked = true;
      model.send({ wishes: [...wishes.values()] });
    };
    /** @type {Parameters<typeof kernel.iopubMessage.connect>[0]} */
    const onMessage = (_, message) => {
      if (message.header.msg_type !== "status" || message.parent_header.msg_type !== "execute_request") return;
      clearTimeout(timer);
      if (message.content.execution_state === "idle") timer = setTimeout(ask, QUIET_MS);
    };
    /** @type {Parameters<typeof context.saveState.connect>[0]} */
    const onSave = (_, state) => { // what has been moved or run since the last pictures is saved by another save
      if (state !== "started" || own) return;
      ask();
      saved = asked;
    };
    /** @type {Parameters<typeof model.on>[1]} */
    const onPictures = async ({ pictures }) => {
      asked = false;
      if (write(manager, pictures)) context.model.dirty = changed = true;
      if (again) return void ask();
      const late = saved && changed;
      saved = changed = false;
      if (!late) return;
      own = true;
      try { await context.save(); } finally { own = false; }
    };
    /** @param {unknown} _ @param {string} status */
    const onStatus = (_, status) => { if (ENDS.includes(status)) stop(); };
    const stop = () => {
      clearTimeout(timer);
      kernel.disposed.disconnect(stop);
      model.off("msg:custom", onPictures);
      kernel.iopubMessage.disconnect(onMessage);
      kernel.statusChanged.disconnect(onStatus);
      context.saveState.disconnect(onSave);
    };
    model.on("msg:custom", onPictures);
    kernel.iopubMessage.connect(onMessage);
    kernel.statusChanged.connect(onStatus);
    kernel.disposed.connect(stop);
    context.saveState.connect(onSave);
    model.send({ stores: true });
    timer = setTimeout(ask, QUIET_MS); // the cell that displays the first view may have ended by now
    return stop;
  },
};
