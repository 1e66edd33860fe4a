"""The claims of papers: a module for each kind of claim, which reads, judges and describes it.

A kind is a subclass of `statement.Statement`. `claim` lists them by the names that they have in `claims.toml`.
"""
