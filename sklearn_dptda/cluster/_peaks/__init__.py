"""Peaks of a density on a graph of neighbours, and their hierarchy by prominence.

The graph joins near rows, which is not private, or neighbouring cells of a private histogram.
"""
