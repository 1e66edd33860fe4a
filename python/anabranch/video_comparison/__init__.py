"""Schemes compared by what a viewer sees: simulated runs of one clip, their frames, and how good they look."""
