"""Multipath SCTP: simulate it, measure it, compare its schemes, and use it."""
