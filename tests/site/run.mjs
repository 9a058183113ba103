// Runs a Python program in Pyodide: node run.mjs RUNTIME PROGRAM INPUT, RUNTIME as `binder.site.runtime` makes it.
// The program is that of a notebook's cell: the lock says which packages it loads. It finds the folder INPUT at /input.
// A package that is on a server is out of reach, which is reported; JavaScript takes the place of crc32c, because
// checksums in Python would take most of the time.

import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, program, input] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(join(runtime, "pyodide.mjs")).href);
const pyodide = await loadPyodide({ indexURL: join(runtime, "/"), env: { SHAREQ_READER: "1" } });
const crc32c = await readFile(new URL("crc32c.js", import.meta.url), "utf8");
pyodide.registerJsModule("crc32c", { crc32c: (0, eval)(crc32c) });
const source = await readFile(program, "utf8");
await pyodide.loadPackagesFromImports(source, { messageCallback: () => {}, errorCallback: console.error });
pyodide.FS.mkdirTree("/input");
pyodide.FS.mount(pyodide.FS.filesystems.NODEFS, { root: input }, "/input");
await pyodide.runPythonAsync(source);
