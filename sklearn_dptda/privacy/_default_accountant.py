"""The accountant of the surrounding ``with`` block, by thread and by task of an event loop."""

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
    task: asyncio.Task[Any] | None
    closed: bool = False


# Blocks around this thread or task, innermost last.
_AROUND: ContextVar[tuple[_Block, ...]] = ContextVar("_AROUND", default=())
# All open blocks of the process, for threads and contexts that inherit none.
_OPEN: list[_Block] = []


def open_block(accountant: Any) -> None:
    """Make an accountant the default of this thread or task."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    block = _Block(accountant, threading.current_thread(), task)
    _AROUND.set((*_around(), block))
    with process_lock:
        _OPEN.append(block)


def close_block(accountant: Any) -> None:
    """End the innermost open block of an accountant."""
    with process_lock:
        # Whoever closes a block that another thread or task has opened closes it all the same.
        for blocks in (_around(), _OPEN):
            matching = [block for block in blocks if block.accountant is accountant]
            if matching:
                matching[-1].closed = True
                break
        _OPEN[:] = [block for block in _OPEN if not block.closed]
    _AROUND.set(_around())


def _around() -> tuple[_Block, ...]:
    return tuple(block for block in _AROUND.get() if not block.closed)


def default_accountant() -> Any:
    """Return the accountant of the innermost ``with`` block, or None.

    Raises
    ------
    RuntimeError
        Outside of any block, in a worker thread that could belong to several
        of them, and in a thread in which only other tasks have blocks.
    """
    if around := _around():
        return around[-1].accountant
    with process_lock:
        # The innermost block of each thread and task counts.
        others = {(block.thread, block.task): block for block in _OPEN}.values()
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
