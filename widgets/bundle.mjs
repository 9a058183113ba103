// Bundles each entry of shareq_widgets/js to one module in shareq_widgets/static, which is in git and in the wheel.
// With --check nothing is written, and a folder that differs is an error.

import { createHash } from "node:crypto";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const WIDGETS = ["partition_strip", "group_picture", "labels", "idle", "refresh"];

const root = fileURLToPath(new URL("shareq_widgets", import.meta.url));
const folder = join(root, "static");

/** @param {string[]} names @param {import("esbuild").BuildOptions} options @returns {Promise<[name: string, code: string][]>} */
async function bundled(names, options) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: names.map((name) => `js/${name}.js`),
    outdir: folder,
    bundle: true,
    charset: "utf8",
    minify: true,
    target: "es2022",
    write: false,
    ...options,
  });
  return outputFiles.map(({ path, text }) => [basename(path), text]);
}

// Each widget of a page imports its bundle anew. The first one makes the module for all widgets with the same bundle:
// else each would have functions of its own, which a browser compiles and optimizes one by one.
/** @param {string} name @param {string} code */
function shared(name, code) {
  const hash = createHash("sha256").update(code).digest("hex").slice(0, 16);
  return `const make=()=>{${code.trimEnd()}return module.default};export default globalThis[Symbol.for("shareq/${name}/${hash}")]??=make();\n`;
}

const widgets = await bundled(WIDGETS, { format: "iife", globalName: "module" });
const pages = await bundled(["offline"], { format: "esm" });
const made = new Map([...widgets.map(([name, code]) => [name, shared(name, code)]), ...pages].map(([name, code]) => [name, Buffer.from(code)]));

const kept = new Map();
for (const name of await readdir(folder)) kept.set(name, await readFile(join(folder, name)));

const stale = [...new Set([...made.keys(), ...kept.keys()])].filter((name) => !kept.has(name) || !made.get(name)?.equals(kept.get(name)));
if (process.argv.includes("--check")) {
  if (stale.length) console.error(`stale in widgets/shareq_widgets/static: ${stale.join(", ")}. Run: make bundle`);
  process.exitCode = stale.length ? 1 : 0;
} else {
  for (const name of stale) await (made.has(name) ? writeFile(join(folder, name), made.get(name)) : rm(join(folder, name)));
  for (const [name, contents] of made) console.log(`${name}: ${contents.length} bytes${stale.includes(name) ? ", changed" : ""}`);
}
