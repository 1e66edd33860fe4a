"""Rules about limits: the mean of a measure over seeds has to stay within bounds at each point.

A limit is broken if even the one-sided bound of the mean is beyond it. Otherwise it is respected, given enough seeds.
"""
