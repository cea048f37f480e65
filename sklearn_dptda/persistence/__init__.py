"""Filtrations to persistence diagrams, exact and private."""
