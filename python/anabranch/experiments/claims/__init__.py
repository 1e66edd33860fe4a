"""Claims: a module for each kind, which reads, judges and describes claims of that kind.

A kind is a subclass of `statement.Statement`. `claim` lists them by the names that they have in `claims.toml`.
"""
