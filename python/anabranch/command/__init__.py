"""The `anabranch` command of the Python package."""

from anabranch.command.dispatch import main

__all__ = ["main"]
