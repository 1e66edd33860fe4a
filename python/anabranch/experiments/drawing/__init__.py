"""Figures that repeat figures of the sources with the same axes, in this package's style, and their data."""
