// An empty place: it reports when the page has drawn the widgets beside it, and has nothing else to do.

/** @import { Model } from "./types.d.ts" */

const FRAMES = 2; // of the widgets beside it: the first has their sizes, the second their pictures
const PATIENCE_MS = 1000;

export default {
  /** @param {{ model: Model }} context */
  render({ model }) {
    let open = true;
    const report = () => { if (open) model.send({ do: "idle", value: null }); };
    const wait = "requestIdleCallback" in window ? () => requestIdleCallback(report, { timeout: PATIENCE_MS }) : () => setTimeout(report, PATIENCE_MS);
    /** @param {number} left */
    const frame = (left) => { requestAnimationFrame(() => (left > 1 ? frame(left - 1) : wait())); };
    frame(FRAMES);
    return () => { open = false; };
  },
};
