"""Processes that tests start with the library loaded, where the system can fork."""

import multiprocessing
import os
import signal
import warnings

CONTEXT = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")


class Child:
    """A process that waits for :meth:`go` and calls ``function(say, *arguments)``.

    What it says arrives here in its order, also if the process is killed.
    """

    def __init__(self, function, *arguments):
        self._pipe, other_end = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=_run, args=(other_end, function, *arguments))
        with warnings.catch_warnings():
            # Threads of other tests may wait for work in this process. A child uses none of them.
            warnings.filterwarnings("ignore", "This process", DeprecationWarning)
            self.process.start()
        # The child must hold the only copy, so that the pipe ends with it.
        other_end.close()
        assert self.word() == "ready"

    def go(self):
        self._pipe.send("go")
        return self

    def word(self):
        assert self._pipe.poll(300), "the process says nothing"
        return self._pipe.recv()

    def words(self, exit_code=0):
        """All further words, when the process has ended."""
        found = []
        try:
            while True:
                found.append(self.word())
        except (EOFError, ConnectionResetError):
            self.process.join(300)
        assert self.process.exitcode == exit_code
        return found


def _run(pipe, function, *arguments):
    pipe.send("ready")
    pipe.recv()
    function(pipe.send, *arguments)


def in_a_fork(work):
    """Call ``work`` in a copy of this process, which must end well, and within five minutes."""
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
