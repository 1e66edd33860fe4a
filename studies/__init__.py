"""Experiments about the schemes of this project, run from a checkout: `make study NAME=...`."""
