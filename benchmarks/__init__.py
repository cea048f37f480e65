"""Benchmarks of accuracy and of times, compared with other libraries in the same run."""
