"""Parser with help and errors in the style of the native commands, which use clap."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any, NoReturn

MAX_COLUMNS = 100


class Formatter(argparse.HelpFormatter):
    """Formatter with the width of the terminal, limited to that of native commands. Examples keep their lines."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(shutil.get_terminal_size().columns, MAX_COLUMNS))

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, "Usage: " if prefix is None else prefix)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("Examples:"):
            return text
        return super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """Parser that shows `examples` below the options. `add_subparsers` creates subcommands of the same class."""

    def __init__(self, **others: Any) -> None:
        super().__init__(formatter_class=Formatter, add_help=False, **others)
        self.register("type", Path, _path)
        self._positionals.title = "Arguments"
        self._optionals.title = "Options"
        self.add_argument("-h", "--help", action="help", help="Print help")

    def error(self, message: str) -> NoReturn:
        """Prints the error of the command line, and exits with status 2."""
        usage = self.format_usage().strip()
        self.exit(2, f"error: {message}\n\n{usage}\n\nFor more information, try '--help'.\n")


def _path(typed: str) -> Path:
    """Returns a typed path. A leading `~/` is the user's home folder; most shells do not expand it after `=`."""
    return Path(typed).expanduser() if typed == "~" or typed.startswith("~/") else Path(typed)
