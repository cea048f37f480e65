"""Whose ``with`` block a release is made in: that of its thread, or of its task."""

import asyncio
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sklearn_dptda.privacy._ledger_stores import process_lock


@dataclass(eq=False)
class _Block:
    """One ``with`` block, open until somebody closes it, alive or not who opened it."""

    accountant: Any
    thread: threading.Thread
    task: Any
    closed: bool = False


# Blocks around this thread or task, innermost last.
_AROUND: ContextVar[tuple[_Block, ...]] = ContextVar("_AROUND", default=())


class _Blocks:
    """All open blocks of the process, for threads and contexts that inherit none."""

    def __init__(self):
        self._open = []

    def push(self, accountant):
        block = _Block(accountant, threading.current_thread(), _task())
        _AROUND.set((*_mine(), block))
        with process_lock:
            self._open.append(block)

    def pop(self, accountant):
        with process_lock:
            # Whoever closes a block that another thread or task has opened closes it all the same.
            for blocks in (_mine(), self._open):
                matching = [block for block in blocks if block.accountant is accountant]
                if matching:
                    matching[-1].closed = True
                    break
            self._open = [block for block in self._open if not block.closed]
        _AROUND.set(_mine())

    def accountant(self):
        """Return the accountant of the block that a release of this context is made in, or None."""
        if mine := _mine():
            return mine[-1].accountant
        with process_lock:
            # Of each thread and task the innermost block counts.
            others = {(block.thread, block.task): block for block in self._open}.values()
        if not others:
            return None
        several = len({id(block.accountant) for block in others}) > 1
        if several or any(block.thread is threading.current_thread() for block in others):
            raise RuntimeError(
                "Other threads or tasks have made accountants the default, and it cannot be told "
                "which of them this one works for: pass accountant= to the estimators instead. "
                "Nothing was released."
            )
        return next(iter(others)).accountant


def _mine():
    return tuple(block for block in _AROUND.get() if not block.closed)


def _task():
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


BLOCKS = _Blocks()
