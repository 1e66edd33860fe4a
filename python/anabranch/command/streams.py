"""Standard streams that cannot be written: closed, on a full device, or with a reader that has ended.

A notice that cannot be written to standard error is dropped without an error. A result that cannot be written to
standard output is an error of the command, unless the reader of a pipe has ended.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

# Replacements in ASCII for signs in tables and figures.
_PLAIN = {
    "─": "-",
    "±": "+/-",
    "\N{MULTIPLICATION SIGN}": "x",
    "·": "*",
    "…": "...",
    "≥": ">=",
    "≤": "<=",
    "→": "->",
    "µ": "u",
    "\N{EN DASH}": "-",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
}
_ERRORS = "anabranch-plain"


class _Stream:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Notices(_Stream):
    """Standard error that ignores write errors."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()


class Results(_Stream):
    """Standard output that records its error."""

    error: OSError | None = None

    def write(self, text: str) -> int:
        with self._remembering():
            return self._stream.write(text)

    def flush(self) -> None:
        with self._remembering():
            self._stream.flush()

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = error
            raise


def _in_plain_text(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replaces a character that is missing in the encoding of a stream."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start]
    # An undecodable byte of a file name is written unchanged.
    escaped = ord(wrong) - 0xDC00
    return (bytes([escaped]) if 0x80 <= escaped <= 0xFF else _PLAIN.get(wrong, "?")), error.start + 1


def _accept_all_text() -> None:
    """Makes both standard streams replace characters that their encoding lacks, as in a locale without UTF-8."""
    codecs.register_error(_ERRORS, _in_plain_text)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and stream.errors in ("strict", "backslashreplace", "surrogateescape"):
            reconfigure(errors=_ERRORS)


def prepare() -> None:
    """Opens the null device in place of closed standard streams, and drops failed writes to standard error.

    Otherwise the next file or socket would take the closed stream's descriptor and receive the output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    _accept_all_text()
    if not isinstance(sys.stdout, Results):
        sys.stdout = cast(TextIO, Results(sys.stdout or _null()))
    if not isinstance(sys.stderr, Notices):
        sys.stderr = cast(TextIO, Notices(sys.stderr or _null()))


def _null() -> TextIO:
    return os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def abandon_output() -> None:
    """Redirects standard output to the null device, so that the interpreter's exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def raise_output_error() -> None:
    """Raises an error of standard output that a library has suppressed, as `argparse` does for the help."""
    if isinstance(sys.stdout, Results) and sys.stdout.error is not None:
        raise sys.stdout.error


def is_of_output(error: OSError) -> bool:
    """Returns `True` if this is the error of standard output."""
    return isinstance(sys.stdout, Results) and sys.stdout.error is error
