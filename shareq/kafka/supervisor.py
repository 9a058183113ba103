"""A parent process for a broker, so that the broker ends with the process that started it, even after kill -9.

This program starts Java. Its standard input is a pipe from the starting process; a letter in it is a command (t:
terminate, k: kill). The end of the pipe, or a changed parent (a forked sibling may hold the pipe open), means that the
starting process has ended: then Java is killed and its folder removed. If this program itself is killed, Linux ends
Java with it. It runs as a plain script, without shareq: `python supervisor.py FOLDER COMMAND...`
"""

import os
import select
import shutil
import signal
import sys
import threading

ORDERS = {b"t": signal.SIGTERM, b"k": signal.SIGKILL}
_CHECK_PARENT_S = 1.0
_PR_SET_PDEATHSIG = 1


def main(folder: str, command: list[str]) -> int:
    parent = os.getppid()
    java = os.fork()
    if java == 0:
        _become(command)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(java, signal.SIGTERM))
    orphaned = threading.Event()
    threading.Thread(target=_watch, args=(java, parent, orphaned), daemon=True).start()
    _, status = os.waitpid(java, 0)
    if orphaned.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _become(command: list[str]) -> None:
    try:
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # so that Java does not read the commands
        os.execv(command[0], command)
    except OSError as error:
        os.write(1, f"{command[0]}: {error}\n".encode())
    finally:
        os._exit(127)


def _watch(java: int, parent: int, orphaned: threading.Event) -> None:
    while os.getppid() == parent:
        if select.select([0], [], [], _CHECK_PARENT_S)[0]:
            letter = os.read(0, 1)
            if letter not in ORDERS:
                break
            os.kill(java, ORDERS[letter])
    orphaned.set()
    os.kill(java, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
