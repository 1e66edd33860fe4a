"""Reads `experiments.toml`."""
