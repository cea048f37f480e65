"""Replicates and privacy-utility curves."""
