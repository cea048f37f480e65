"""Morse theory of mixture densities: modes, saddles, the barriers between modes, the merge tree.

Functions of a mixture's parameters alone, and so as private as those.
"""
