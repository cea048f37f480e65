"""The variants of private diagrams in the room ``published``, each with one part of the paper."""

from sklearn_dptda.published import PublishedPersistence


def variant(**options):
    """Return private diagrams that differ from the default ones by these options alone."""
    ours = {"mechanism": "exact", "utility": "max", "base_measure": "spike-slab"}
    return PublishedPersistence(**{**ours, **options})
