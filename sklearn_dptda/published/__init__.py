"""The algorithms of the papers as printed, for comparisons with what this package draws instead."""

from sklearn_dptda.published._published_persistence import PublishedPersistence

__all__ = ["PublishedPersistence"]
