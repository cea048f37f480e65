"""Mixtures of a fixed number of steps, for comparisons of time with scikit-learn's."""

from sklearn_dptda.cluster import DPMoG

# Moments of all rows, eight k-means steps and two mixture steps.
N_PASSES = 11


class TwoMixtureSteps(DPMoG):
    """A private mixture of two mixture steps, whatever the number of rows."""

    _n_mixture_steps = 2
