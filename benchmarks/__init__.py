"""Benchmarks of speed, acceptance and utility, compared with other libraries in the same run."""
