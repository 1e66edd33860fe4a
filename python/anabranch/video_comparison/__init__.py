"""Comparison of schemes by the picture that a viewer sees: simulated runs of one clip, their frames and quality."""
