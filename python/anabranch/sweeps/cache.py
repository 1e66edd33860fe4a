"""Finished runs on disk: one small file for each, found by the key of the run.

The path of an entry is `FOLDER/ab/abcd...`, where the name is the run's key. It has a line with the format, the key and
the SHA-256 of the rest, and then the run's figures as JSON. Entries are written under a temporary name and then
renamed. So several sweeps may share a folder, and a killed sweep leaves no incomplete entry under a key.
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
    """Returns the default folder of finished runs: `$ANABRANCH_CACHE`, or one in the user's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    return Path(platformdirs.user_cache_dir("anabranch", appauthor=False)) / "runs"


class Cache:
    """Store of entries. A failure to read or write one is no error: the store counts and reports it later."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged = 0
        self.first_damage = ""
        self.unstored = 0
        self.first_failure = ""
        self._own = f"{os.getpid()}-{secrets.token_hex(4)}"

    @staticmethod
    def open(folder: Path) -> Cache:
        """Makes the folder of a cache, and returns the cache. Raises `CacheError` if that fails."""
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
        """Returns the path of the entry of this key."""
        return self.folder / key[:2] / key

    def get(self, key: str) -> str | None:
        """Returns the figures of a run, if there is a valid entry."""
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
        """Counts an entry that cannot be used. The sweep repeats the run, and replaces the entry."""
        self.damaged += 1
        self.first_damage = self.first_damage or f"{self.path(key)}: {fault}"

    def put(self, key: str, figures: str) -> bool:
        """Stores the figures of a run. Returns `False` if that fails."""
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
            self.unstored += 1
            self.first_failure = self.first_failure or f"{path}: {error.strerror or error}"
            _remove(beside)
            return False
        return True

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        # A single unbuffered write, since this happens for every run.
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
    # A file that could not be written may not be removable either, and does no harm.
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
