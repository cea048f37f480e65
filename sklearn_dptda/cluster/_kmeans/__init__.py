"""What the private k-means estimators are made of: their base, boxes of a tree, swaps.

Boxes, candidates and numbers of swaps are public or private output; rows are met through noisy
moments and private choices.
"""
