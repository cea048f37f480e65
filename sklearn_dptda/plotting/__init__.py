"""Displays."""
