"""Figures with the axes of the sources in this package's style, and their data."""
