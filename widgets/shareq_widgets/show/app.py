"""The page of `shareq show`: Voila on a notebook of one cell, on this machine only, without a request to any other."""

from __future__ import annotations

import errno
import logging
import signal
import sys
import webbrowser
from asyncio import Future
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import create_server, socket
from tempfile import TemporaryDirectory
from typing import Any, Final

import nbformat
from jupyter_core.utils import run_sync
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.websocket import WebSocketClosedError
from voila.app import Voila

from shareq.model.errors import ConfigException

HOST: Final = "127.0.0.1"
TEMPLATE: Final = Path(__file__).parent / "template"
NAME: Final = "control room.ipynb"
"""The file name of the notebook; the page's title is taken from it."""

SETTINGS: Final = {
    "allow_remote_access": False,  # refuse the host names of other sites
    "ws_ping_interval": 0,
}
"""Without pings: a page on this machine cannot vanish without the end of its connection. Jupyter's pings and Tornado's
limits leave a pong no time: a ping that is some milliseconds late would close the connection, with a warning."""

TRANSPORT: Final = () if sys.platform == "win32" else ("--KernelManager.transport=ipc",)
"""Sockets of the file system connect the page's kernel, which other users cannot open."""


class Connection(ZMQChannelsWebsocketConnection):
    """The connection of a page to its kernel. Messages that are under way while the connection closes are dropped."""

    @property
    def write_message(self) -> Callable[..., None]:
        """Send a message to the page."""
        return self._write

    def _write(self, message: str | bytes, binary: bool = False) -> None:
        """Jupyter's server does not wait for the end of a write: the loop would log a traceback for each that fails."""
        with suppress(WebSocketClosedError):
            self.websocket_handler.write_message(message, binary).add_done_callback(_drop_closed)

    def handle_incoming_message(self, incoming_msg: str) -> None:
        """Jupyter's server would decode it by the wrong protocol, and log a traceback."""
        if self.websocket_handler.ws_connection is not None:
            super().handle_incoming_message(incoming_msg)


def _drop_closed(written: Future[None]) -> None:
    """Take the error of a write to a page that has closed meanwhile; log any other."""
    problem = None if written.cancelled() else written.exception()
    if problem is not None and not isinstance(problem, WebSocketClosedError):
        logging.getLogger(__name__).error("a message did not reach the page", exc_info=problem)


class Page(Voila):
    """Voila on sockets that are bound already. It reads no configuration of the user."""

    def __init__(self, sockets: list[socket], ready: Callable[[str], None], **traits: Any) -> None:
        super().__init__(
            config_file_paths=[],
            log_level=logging.ERROR,
            kernel_websocket_connection_class=Connection,
            **traits,
        )
        self._sockets = sockets
        self._ready = ready

    def setup_template_dirs(self) -> None:
        super().setup_template_dirs()
        self.template_paths.insert(0, str(TEMPLATE))

    def listen(self) -> None:
        """Serve until SIGINT or SIGTERM."""
        self.app.settings.update(SETTINGS)
        HTTPServer(self.app).add_sockets(self._sockets)
        self.ioloop = IOLoop.current()
        _at_first_signal(lambda: self.ioloop.add_callback_from_signal(self.ioloop.stop))
        self._ready(f"http://{HOST}:{self.port}/")
        try:
            self.ioloop.start()
        finally:
            self.stop()

    def stop(self) -> None:
        """End the kernels at once: an interrupted kernel would log a traceback. Their folder is the caller's."""
        run_sync(self.kernel_manager.shutdown_all)(now=True)


def serve(code: str, *, port: int, theme: str, opened: Callable[[str], None], open_browser: bool) -> None:
    """Serve a page of the output of `code` until SIGINT or SIGTERM; each opened page has a kernel of its own.

    `opened` is called with the address when the page answers. `port` 0: a free one. ConfigException if it is in use.
    Later signals are ignored: the process is about to end.
    """
    listening = _bound(port)

    def ready(address: str) -> None:
        opened(address)
        if open_browser:
            webbrowser.open(address)

    with TemporaryDirectory(prefix="shareq-show-") as folder:
        notebook = Path(folder) / NAME
        _write_notebook(notebook, code, follows_system=theme == "auto")
        page = Page([listening], ready, port=listening.getsockname()[1], notebook_path=str(notebook))
        page.connection_dir_root = folder
        page.initialize([f"--theme={'dark' if theme == 'dark' else 'light'}", "--show_tracebacks=True", *TRANSPORT])
        page.start()


def _bound(port: int) -> socket:
    try:
        listening = create_server((HOST, port))
        listening.setblocking(False)
        return listening
    except OSError as problem:
        if problem.errno != errno.EADDRINUSE:
            raise
        message = f"port {port} on {HOST} is in use by another program: choose another --port"
        raise ConfigException(message) from problem


def _write_notebook(path: Path, code: str, *, follows_system: bool) -> None:
    """`follows_system`: the template reads it, and chooses between light and dark in the browser."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "follows_system": follows_system}
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)], metadata=metadata), path)


def _at_first_signal(end: Callable[[], None]) -> None:
    """Call `end` on the first SIGINT or SIGTERM, and ignore the later ones for good."""
    ending = (signal.SIGINT, signal.SIGTERM)

    def first(*_: object) -> None:
        for one in ending:
            signal.signal(one, signal.SIG_IGN)
        end()

    for one in ending:
        signal.signal(one, first)
