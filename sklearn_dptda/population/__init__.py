"""What a population of people is like on average, and whether two of them differ.

Each row is one person, such as the features of her cloud.
"""

from sklearn_dptda.population._private_mean import PrivateMean
from sklearn_dptda.population._two_sample_test import TwoSampleTest, private_two_sample_test

__all__ = ["PrivateMean", "TwoSampleTest", "private_two_sample_test"]
