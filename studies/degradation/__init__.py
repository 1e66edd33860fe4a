"""Degradation by a scheme of single paths, other flows, links and small messages."""
