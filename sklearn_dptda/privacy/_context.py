"""Whose ``with`` block a release is made in: that of its thread, or of its task."""

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

from sklearn_dptda.privacy._stores import process_lock

# Accountants of the ``with`` blocks around this thread or task, innermost last.
_INNERMOST: ContextVar[tuple[Any, ...]] = ContextVar("_INNERMOST", default=())


class _Blocks:
    """All ``with`` blocks of the process, for threads and contexts that inherit none."""

    def __init__(self):
        self._open = []

    def push(self, accountant):
        _INNERMOST.set((*_INNERMOST.get(), accountant))
        with process_lock:
            self._open.append((accountant, threading.current_thread(), _task()))

    def pop(self, accountant):
        stack = list(_INNERMOST.get())
        if accountant in stack:
            del stack[len(stack) - 1 - stack[::-1].index(accountant)]
            _INNERMOST.set(tuple(stack))
        with process_lock:
            # A block that another thread or task closes than opened it is closed all the same.
            mine = [entry for entry in self._open if entry[0] is accountant]
            here = [entry for entry in mine if entry[1:] == (threading.current_thread(), _task())]
            if mine:
                self._open.remove((here or mine)[-1])

    def accountant(self):
        """Return the accountant of the block that a release of this context is made in, or None."""
        if mine := _INNERMOST.get():
            return mine[-1]
        others = self.of_others()
        if not others:
            return None
        several = len({id(accountant) for _, accountant in others}) > 1
        if several or any(thread is threading.current_thread() for thread, _ in others):
            raise RuntimeError(
                "Other threads or tasks have made accountants the default, and it cannot be told "
                "which of them this one works for: pass accountant= to the estimators instead. "
                "Nothing was released."
            )
        return others[0][1]

    def of_others(self):
        """Thread and accountant of the innermost block of each thread and task that lives."""
        with process_lock:
            self._open = [entry for entry in self._open if _lives(*entry[1:])]
            innermost = {(thread, task): accountant for accountant, thread, task in self._open}
        return [(thread, accountant) for (thread, _), accountant in innermost.items()]


def _task():
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _lives(thread, task):
    return thread.is_alive() and not (task is not None and task.done())


BLOCKS = _Blocks()
