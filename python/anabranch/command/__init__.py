"""The `anabranch` command of the Python package."""

from anabranch.command.main import main

__all__ = ["main"]
