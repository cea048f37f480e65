"""Small faults, planted one at a time in code that a guarantee rests on, which tests must detect.

``python -m tests.mutants`` plants each of them in a copy of the package and runs the tests of the
unit layer that are named here for its file.
"""
