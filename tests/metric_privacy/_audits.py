"""Audits of private measures, each with its broken twin."""

from sklearn_dptda.privacy import audit_epsilon


def assert_audited(release, first, second):
    """Acquit a release of epsilon 1, and catch its twin with an eighth of the noise.

    ``release`` takes rows, a state and an epsilon, and returns a number.
    """

    def audit(epsilon, n_runs):
        return audit_epsilon(
            lambda X, random_state=None: release(X, random_state, epsilon),
            first,
            second,
            n_runs=n_runs,
            confidence=1 - 1e-6,
            random_state=0,
        )

    assert not audit(1.0, 4000).refutes(1.0)
    assert audit(8.0, 2000).refutes(1.0)
