"""Goodput of schemes in relation to the maximum that links and receive buffer admit."""
