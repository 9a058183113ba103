// Bundles each entry of shareq_widgets/js to one module in shareq_widgets/static, which is in git and in the wheel.
// With --check nothing is written, and a folder that differs is an error.

import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ENTRIES = ["partition_strip", "group_picture", "labels", "idle", "refresh", "offline"];

const root = fileURLToPath(new URL("shareq_widgets", import.meta.url));
const folder = join(root, "static");

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: ENTRIES.map((name) => `js/${name}.js`),
  outdir: folder,
  bundle: true,
  charset: "utf8",
  format: "esm",
  minify: true,
  target: "es2022",
  write: false,
});
const made = new Map(outputFiles.map(({ path, contents }) => [basename(path), Buffer.from(contents)]));

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
