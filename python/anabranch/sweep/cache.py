"""Finished runs on disk: one small file for each, found by the key of the run.

An entry stands in `FOLDER/ab/abcd...`, the name being the run's key. It is a line with the format, the key and the
SHA-256 of what follows, and then the run's figures as JSON. Entries are written beside their place and moved there, so
that several sweeps may share a folder, and one that is killed leaves no half of an entry under a key.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

import platformdirs

from anabranch.errors import CacheError

FORMAT = b"anabranch-run-1"
VARIABLE = "ANABRANCH_CACHE"


def default_folder() -> Path:
    """Where finished runs are kept if nothing else is said: `$ANABRANCH_CACHE`, or the user's folder of caches."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    return Path(platformdirs.user_cache_dir("anabranch", appauthor=False)) / "runs"


class Cache:
    """Reads and writes entries. What goes wrong with one of them is no error: it is counted, and can be told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged = 0
        self.first_damage = ""
        self.unkept = 0
        self.first_failure = ""
        self._own = f"{os.getpid()}-{secrets.token_hex(4)}"

    @staticmethod
    def open(folder: Path) -> Cache:
        """The cache in this folder, which is made. Raises `CacheError` if there can be none."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            next(folder.iterdir(), None)
        except OSError as error:
            raise CacheError(
                f"{folder}: finished runs cannot be kept here: {error.strerror}; name another folder with cache= or "
                f"--cache or ${VARIABLE}, or do without with cache=None or --no-cache"
            ) from error
        return Cache(folder)

    def path(self, key: str) -> Path:
        """Where the entry of this key stands."""
        return self.folder / key[:2] / key

    def get(self, key: str) -> str | None:
        """The figures of a run, if there is a sound entry."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.count_damage(key, error.strerror or str(error))
            return None
        header, _, figures = content.partition(b"\n")
        if header == _header(key, figures):
            return figures.decode()
        fault = "its checksum differs" if header.startswith(FORMAT + b" ") else "it has another format"
        self.count_damage(key, fault)
        return None

    def count_damage(self, key: str, fault: str) -> None:
        """Takes note of an entry that cannot be used; the run is made again, and the entry replaced."""
        self.damaged += 1
        self.first_damage = self.first_damage or f"{self.path(key)}: {fault}"

    def put(self, key: str, figures: str) -> bool:
        """Keeps the figures of a run, if that can be done."""
        content = figures.encode()
        path = self.path(key)
        beside = path.with_name(f"{key}.{self._own}")
        try:
            try:
                self._write(beside, _header(key, content) + b"\n" + content)
            except FileNotFoundError:
                path.parent.mkdir(exist_ok=True)
                self._write(beside, _header(key, content) + b"\n" + content)
            beside.replace(path)
        except OSError as error:
            self.unkept += 1
            self.first_failure = self.first_failure or f"{path}: {error.strerror or error}"
            _remove(beside)
            return False
        return True

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        # One call for all of it, and no buffer between: this is done once for every run.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            written = os.write(descriptor, content)
        finally:
            os.close(descriptor)
        if written != len(content):
            raise OSError(f"only {written} of {len(content)} bytes could be written")


def _header(key: str, figures: bytes) -> bytes:
    return b"%s %s %s" % (FORMAT, key.encode(), hashlib.sha256(figures).hexdigest().encode())


def _remove(path: Path) -> None:
    # What could not be written cannot always be removed either, and is in nobody's way.
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
