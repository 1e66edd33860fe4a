"""Text files that users write and edit."""

from __future__ import annotations

from pathlib import Path

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""UTF-8's byte order mark, which some editors write at the beginning of a file."""

ENCODING = "utf-8-sig"
"""Encoding of text files: UTF-8, with or without a byte order mark."""


def read_text(path: Path) -> str:
    """Returns the text of a file. Raises `OSError`, or `UnicodeDecodeError` if it is not UTF-8."""
    return path.read_text(encoding=ENCODING)
