"""A pipeline step whose worker dies once, after it has seen a release."""

import contextlib
import os
import pickle
import random
import signal
import threading
import time

from sklearn.base import BaseEstimator, TransformerMixin

# Windows has no signal that cannot be caught, and other signals end a process at once.
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class Killer:
    """Kills the process that calls it first."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self):
        try:
            open(self.path, "x").close()
        except FileExistsError:
            return
        os.kill(os.getpid(), KILL)


class Fragile(TransformerMixin, BaseEstimator):
    """Keeps what it is given in a folder; the first time that it runs in a worker it kills that."""

    def __init__(self, folder, spared):
        self.folder = folder
        self.spared = spared

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if os.getpid() == self.spared:
            return X
        try:
            with open(os.path.join(self.folder, "seen.pickle"), "xb") as file:
                pickle.dump(X, file)
        except FileExistsError:
            return X
        os.kill(os.getpid(), KILL)


class Doomed(TransformerMixin, BaseEstimator):
    """Takes its time, while its process waits for a random moment to die, so many times in all."""

    _clock = None

    def __init__(self, folder, spared, deaths):
        self.folder = folder
        self.spared = spared
        self.deaths = deaths

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        here = os.getpid(), self.folder
        if here[0] != self.spared and here != Doomed._clock:
            Doomed._clock = here
            threading.Thread(target=self._die, daemon=True).start()
        time.sleep(0.005)
        return X

    def _die(self):
        # The pipelines of the tests run for at least half a second. One death must be in it.
        time.sleep(random.uniform(0.0, 0.2))
        for number in range(self.deaths):
            Killer(os.path.join(self.folder, str(number)))()


class FailsOnce(TransformerMixin, BaseEstimator):
    """Fails the second time that any of its copies runs."""

    def __init__(self, folder):
        self.folder = folder

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        number = len(os.listdir(self.folder))
        open(os.path.join(self.folder, str(number)), "x").close()
        if number == 1:
            raise ArithmeticError("on purpose")
        return X


class Interrupted(TransformerMixin, BaseEstimator):
    """Sends Ctrl-C to a process when its copies have run so many times."""

    def __init__(self, folder, after, target):
        self.folder = folder
        self.after = after
        self.target = target

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        number = len(os.listdir(self.folder))
        # On a busy machine, the signal may arrive late, but before half of the later copies end.
        time.sleep(0.02 if number < self.after else 1.0)
        open(os.path.join(self.folder, f"{number}-{os.getpid()}"), "x").close()
        if number >= self.after:
            # Two copies may have the same count. The first copy that arrives here sends the signal.
            with contextlib.suppress(FileExistsError):
                open(os.path.join(self.folder, "sent"), "x").close()
                os.kill(self.target, signal.SIGINT)
        return X


class Weighed(BaseEstimator):
    """Counts in this process how often it is pickled."""

    count = 0

    def __init__(self, n=0):
        self.n = n

    def __getstate__(self):
        Weighed.count += 1
        return super().__getstate__()
