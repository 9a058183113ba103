"""Waiting for a socket in an asyncio loop."""

from __future__ import annotations

import asyncio
import socket


async def until_ready(opened: socket.socket, *, to_write: bool = False) -> None:
    """Wait until the socket can be read from, or written to."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def arrived() -> None:
        if not ready.done():
            ready.set_result(None)

    watch, forget = (loop.add_writer, loop.remove_writer) if to_write else (loop.add_reader, loop.remove_reader)
    watch(opened, arrived)
    try:
        await ready
    finally:
        forget(opened)
