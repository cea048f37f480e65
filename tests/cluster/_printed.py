"""The covariance step as printed in the paper, a broken twin that audits must catch.

It is one step with one cluster: a noisy count, a noisy sum, and squares about the noisy mean, with
the noise that the paper derives from entries bounded by one and two.
"""

import numpy as np

from sklearn_dptda.privacy import NoiseSource, gaussian_mu

LATTICE = 2.0**-20


class Step:
    """One noisy step; ``scale`` says how much noise."""

    def __init__(self, epsilon, delta, factor=1.0):
        self.epsilon, self.delta, self.factor = epsilon, delta, factor

    def draw(self, noise, d, size):
        return LATTICE * noise.discrete_gaussian(self.scale(d) / LATTICE, size)


class PrintedStep(Step):
    """Releases count, sum, and squares about the released mean."""

    def scale(self, d):
        """By r = 1 + 3 d + 2 d**2, and zCDP as the paper converts it."""
        log = np.log(1 / self.delta)
        rho = (np.sqrt(log + self.epsilon) - np.sqrt(log)) ** 2
        return self.factor * np.sqrt((1 + 3 * d + 2 * d**2) / (2 * rho))

    def __call__(self, X, random_state=None):
        noise, d = NoiseSource(random_state), X.shape[1]
        count = len(X) + self.draw(noise, d, 1)[0]
        total = X.sum(axis=0) + self.draw(noise, d, d)
        residuals = X - total / count
        squares = upper(residuals.T @ residuals)
        return np.r_[count, total, squares + self.draw(noise, d, squares.shape)]


class SoundStep(Step):
    """Releases count, sum and raw squares, with noise for their joint sensitivity."""

    def scale(self, d):
        sensitivity = np.sqrt(1 + d + d * (d + 1) / 2)
        return self.factor * sensitivity / gaussian_mu(self.epsilon, self.delta)

    def __call__(self, X, random_state=None):
        noise, d = NoiseSource(random_state), X.shape[1]
        exact = np.r_[len(X), X.sum(axis=0), upper(X.T @ X)]
        return exact + self.draw(noise, d, exact.shape)


def upper(matrix):
    return matrix[np.triu_indices(len(matrix))]


def log_ratio(release, first, second, scale):
    """Log likelihood ratio of two means under Gaussian noise."""
    return (((release - second) ** 2).sum() - ((release - first) ** 2).sum()) / (2 * scale**2)


def gain_of_printed(release, d, record, n_at_zero, step):
    """Log likelihood ratio of the record being there, from released numbers alone."""
    mean = release[1 : 1 + d] / release[0]
    without = n_at_zero * upper(np.outer(mean, mean))
    moved = upper(np.outer(record - mean, record - mean))
    base = np.r_[n_at_zero, np.zeros(d), without]
    return log_ratio(release, base + np.r_[1, record, moved], base, step.scale(d))


def gain_of_sound(release, d, record, n_at_zero, step):
    """The same for raw moments."""
    base = np.r_[n_at_zero, np.zeros(d + d * (d + 1) // 2)]
    moved = np.r_[1, record, upper(np.outer(record, record))]
    return log_ratio(release, base + moved, base, step.scale(d))
