"""Verdicts on claims, which follow from samples by rules only."""
