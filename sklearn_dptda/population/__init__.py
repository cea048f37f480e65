"""Private statistics of populations: means with confidence bands, and a test of two groups.

Each row is one person, for example the topological features of one person's point cloud.
"""

from sklearn_dptda.population._private_mean import PrivateMean
from sklearn_dptda.population._two_sample_test import TwoSampleTest, private_two_sample_test

__all__ = ["PrivateMean", "TwoSampleTest", "private_two_sample_test"]
