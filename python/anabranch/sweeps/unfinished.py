"""Runs of an unfinished sweep whose schemes depend on more than a key can contain.

They are stored in `FOLDER/unfinished/SWEEP` until the sweep is complete. `SWEEP` is a hash of its points and schemes,
as far as these could be read, without the seeds. The folder is reused if all files that the code came from, and all
files that the schemes opened, are unchanged; otherwise it is removed. A sweep that completes also removes it, so that
the next one makes the runs again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from anabranch.sweeps import sources
from anabranch.sweeps.cache import Cache

_SOURCES = "sources.json"


class Unfinished:
    """Store of the runs of one unfinished sweep."""

    def __init__(self, folder: Path, cells: Iterable[str]) -> None:
        """Opens the runs in `folder`, that of the cache. `cells` has a key for each point with a scheme."""
        name = hashlib.sha256("\n".join(sorted(set(cells))).encode()).hexdigest()
        self._folder = folder / "unfinished" / name
        self._runs = Cache(self._folder)
        self._noted: tuple[int, int] | None = None
        if self._folder.exists() and not self._is_current():
            self.remove()

    @property
    def unstored(self) -> int:
        """Number of runs that could not be written."""
        return self._runs.unstored

    @property
    def first_failure(self) -> str:
        return self._runs.first_failure

    def get(self, key: str) -> str | None:
        """Returns the figures of a run of the interrupted sweep."""
        return self._runs.get(key)

    def put(self, key: str, figures: str) -> bool:
        """Stores the figures of a run. Returns `False` if that fails."""
        with contextlib.suppress(OSError):
            self._note_sources()
        return self._runs.put(key, figures)

    def remove(self) -> None:
        """Removes all runs."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.parent.rmdir()

    def _is_current(self) -> bool:
        try:
            noted: dict[str, Any] = json.loads((self._folder / _SOURCES).read_text(encoding="utf-8"))
            files, process, edited = noted["files"], noted["process"], noted["edited"]
            same = all(sources.stamp_of(path) == stamp for path, stamp in files.items())
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return False
        # Another process loads the current file, which may differ from the one that was loaded before an edit.
        return same and (process == sources.PROCESS or not edited)

    def _note_sources(self) -> None:
        """Writes the files that the runs depend on, if there are more than before."""
        now = (len(sys.modules), len(sources.OPENED_FILES.paths))
        if now == self._noted and self._folder.is_dir():
            return
        files = sources.stamps()
        content = {"process": sources.PROCESS, "edited": sources.is_edited(), "files": files}
        self._folder.mkdir(parents=True, exist_ok=True)
        beside = self._folder / f"{_SOURCES}.{os.getpid()}-{secrets.token_hex(4)}"
        beside.write_text(json.dumps(content), encoding="utf-8")
        beside.replace(self._folder / _SOURCES)
        self._noted = now
