"""Diagrams to feature matrices."""
