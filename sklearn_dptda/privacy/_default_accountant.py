"""The accountant of the surrounding ``with`` block, by thread and by task of an event loop."""

import asyncio
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sklearn_dptda.privacy._ledger_stores import process_lock


@dataclass(eq=False)
class _Block:
    """One ``with`` block. It stays open until it is closed, even if its thread has ended."""

    accountant: Any
    thread: threading.Thread
    task: asyncio.Task[Any] | None
    closed: bool = False


# Blocks around this thread or task, innermost last.
_AROUND: ContextVar[tuple[_Block, ...]] = ContextVar("_AROUND", default=())
# All open blocks of the process, for threads and contexts that inherit no block.
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
        # A block may also be closed by another thread or task than the one that opened it.
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
    """Return the accountant of the innermost ``with`` block, or None if there is none.

    Raises RuntimeError in a worker thread while several threads or tasks have blocks of different
    accountants, and in a thread in which only other tasks have blocks, because the caller cannot
    know which block it belongs to.
    """
    if around := _around():
        return around[-1].accountant
    with process_lock:
        # Only the innermost block of each thread and task applies.
        others = {(block.thread, block.task): block for block in _OPEN}.values()
    if not others:
        return None
    several = len({id(block.accountant) for block in others}) > 1
    if several or any(block.thread is threading.current_thread() for block in others):
        raise RuntimeError(
            "Other threads or tasks have made accountants the default, and it is unknown which of "
            "them this thread or task belongs to. Nothing was released. Instead of a with block, "
            "pass accountant= to the estimators."
        )
    return next(iter(others)).accountant
