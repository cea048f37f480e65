"""What the private k-means estimators are made of: boxes of a tree, candidates, swaps, steps.

Boxes, candidates and numbers of steps are public or private output; rows are met through noisy
moments and private choices.
"""
