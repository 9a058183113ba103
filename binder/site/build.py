"""`python -m binder.site.build FOLDER [SERVER]`: the course as a static site, JupyterLite with Python in the browser.

FOLDER is written anew. Any web server can serve it, under any path. What is downloaded for it stays in FOLDER-parts.
SERVER is the address of a folder with the packages of Pyodide's distribution, by default Pyodide's own: lessons load
numpy, pandas, matplotlib and crc32c from it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL, PYODIDE_KERNEL_PLUGIN_ID

from binder.site.front_page import write_front_page
from binder.site.lessons import write_lessons
from binder.site.runtime import KERNEL_PACKAGES, make_runtime

EXTENSIONS: Final = ("@jupyter-widgets/jupyterlab-manager", "@jupyterlite/pyodide-kernel-extension", "anywidget")
"""The extensions of JupyterLab that the lessons need; others in the environment are left out."""
LABEXTENSIONS: Final = Path(sys.prefix) / "share/jupyter/labextensions"
DRIVE: Final = "/drive"
"""Where the kernel finds the files of JupyterLab's file browser, which the browser stores."""
LOADED: Final = {"packages": list(KERNEL_PACKAGES), "env": {"SHAREQ_COURSE": DRIVE}}
"""The learner's progress is a file on the drive, so that it outlives the page."""
CONFIGURATION: Final[dict[str, Any]] = {
    "jupyter-lite-schema-version": 0,
    "jupyter-config-data": {
        "appName": "shareq",
        "defaultKernelName": "python",
        "litePluginSettings": {
            PYODIDE_KERNEL_PLUGIN_ID: {
                "loadPyodideOptions": {"packages": list(KERNEL_PACKAGES), "env": {"SHAREQ_COURSE": DRIVE}}
            }
        },
    },
}
SETTINGS: Final[dict[str, Any]] = {
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}


def build(site: Path, server: str = PYODIDE_CDN_URL) -> None:
    """Write the site. CalledProcessError if a download or JupyterLite's build fails: its output names the cause."""
    parts = site.with_name(f"{site.name}-parts").absolute()
    lite = parts / "lite"
    shutil.rmtree(lite, ignore_errors=True)
    shutil.rmtree(site, ignore_errors=True)
    make_runtime(lite / "static" / "pyodide", parts, server)
    write_lessons(lite / "lessons")
    (lite / "jupyter-lite.json").write_text(json.dumps(CONFIGURATION))
    (lite / "overrides.json").write_text(json.dumps(SETTINGS))
    _jupyterlite(lite, site.absolute())
    write_front_page(site)


def _jupyterlite(lite: Path, site: Path) -> None:
    extensions = [f"--LiteBuildConfig.federated_extensions={LABEXTENSIONS / name}" for name in EXTENSIONS]
    options = {"lite-dir": lite, "output-dir": site, "contents": lite / "lessons", "apps": "lab"}
    named = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    flags = ["--ignore-sys-prefix", "--no-sourcemaps", "--no-unused-shared-packages", "--log-level=WARN"]
    command = [sys.executable, "-m", "jupyterlite_core", "build", *named, *flags, *extensions]
    subprocess.run(command, check=True, cwd=lite)


def main(arguments: list[str]) -> None:
    """Build the site into the folder that is named, with the server that is named."""
    folder, *server = arguments
    build(Path(folder), *server)
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    sys.stdout.write(f"{folder}: {len(files)} files, {size:.0f} MB; python -m http.server --directory {folder}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
