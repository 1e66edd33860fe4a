"""Files that flows send: a run depends on their content, so their hashes are part of its key."""

from __future__ import annotations

import hashlib
from pathlib import Path

from anabranch.errors import RunError


class Files:
    """Hashes of files in a folder, with a check for later changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._digests: dict[str, str] = {}
        self._stamps: dict[Path, tuple[int, int]] = {}

    def digest(self, path: str) -> str:
        """Returns the SHA-256 of a file, by its path from the folder. Raises `OSError`."""
        if path not in self._digests:
            full = self._folder / path
            self._stamps[full] = _stamp(full)
            self._digests[path] = digest_of(full)
        return self._digests[path]

    def check_unchanged(self) -> None:
        """Raises `RunError` if a file has changed since it was hashed, since a run may have sent either version."""
        for full, stamp in self._stamps.items():
            try:
                same = _stamp(full) == stamp
            except OSError as error:
                raise RunError(f"{full}: {error.strerror}") from error
            if not same:
                raise RunError(f"{full}: has changed while the sweep was running: start it again")


def _stamp(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_mtime_ns, state.st_size


def digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file's content. Raises `OSError`."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
