"""Kinds of claims. The module of a kind reads, judges and describes its claims.

A kind is a subclass of `statement.Statement`. `claim` lists them by the names that they have in `claims.toml`.
"""
