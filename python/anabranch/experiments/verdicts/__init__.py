"""Verdicts: what samples say about claims, by rules and by nothing else."""
