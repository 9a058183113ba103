// Changes of values that a view shows at successive moments, see shareq_widgets/changes.py.

/** @import { Change, Model } from "./types.d.ts" */

/**
 * The value after a change; the value itself stays as it is.
 * @param {any} value @param {Change} change @returns {any}
 */
export function apply(value, change) {
  if (change == null) return value;
  if (change[0] === "=") return change[1];
  if (change[0] === "[") return value.toSpliced(change[1], change[2], ...change[3]);
  const after = { ...value };
  for (const key of change[2]) delete after[key];
  for (const [key, one] of Object.entries(change[1])) after[key] = apply(value[key], one);
  return after;
}

/** Python sends the changes of large traits; the model keeps the whole of them for all its views. @param {Model} model */
export function keepWhole(model) {
  model.on("change:changes", () => {
    const changes = model.get("changes");
    if (!changes) return;
    model.set("changes", null); // else a second equal change would be no event
    for (const name of /** @type {(keyof typeof changes)[]} */ (Object.keys(changes))) model.set(name, apply(model.get(name), changes[name] ?? null));
  });
}
