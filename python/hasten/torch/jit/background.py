# SPDX-License-Identifier: Apache-2.0
"""One thread that tunes, one module after the other, while the program goes on."""

import atexit
import contextlib
import queue
import threading
from collections.abc import Callable, Iterator


class Ended(BaseException):
    """The program ends, so the tune has to. No Exception: nobody is to take it for a failure."""


_work: queue.Queue = queue.Queue()
_thread: threading.Thread | None = None
_start = threading.Lock()
_ends = threading.Event()
_local = threading.local()


def run(task: Callable[[], None]) -> None:
    global _thread
    with _start:
        if _thread is None:
            _thread = threading.Thread(target=_serve, name="hasten-jit", daemon=True)
            _thread.start()
    _work.put(task)


def wait() -> None:
    """Until everything that was begun is done."""
    _work.join()


def heartbeat() -> None:
    """Called by a tune now and then, from the thread that tunes."""
    if _ends.is_set():
        raise Ended


def is_tuning() -> bool:
    """Does this thread tune? What it calls and creates is no work of the user's."""
    return getattr(_local, "tuning", False)


@contextlib.contextmanager
def tuning() -> Iterator[None]:
    before, _local.tuning = is_tuning(), True
    try:
        yield
    finally:
        _local.tuning = before


def _serve() -> None:
    with tuning():
        while True:
            task = _work.get()
            try:
                if not _ends.is_set():
                    task()
            finally:
                _work.task_done()


@atexit.register
def _end() -> None:
    # A thread that is still in native code when the interpreter goes would take it down.
    _ends.set()
    if _thread is not None:
        _work.join()
