"""Content of the files that the code of this process came from, and of those that schemes have opened."""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import anabranch

# Identifier of this process, and the time after which an edited file may differ from the loaded one.
PROCESS = uuid.uuid4().hex
_LOADED_AT = time.time()

_PATHS = sysconfig.get_paths()
# Folders that the version of Python and the engine cover.
_COVERED = tuple(
    f"{Path(folder)}{os.sep}" for folder in (_PATHS["stdlib"], _PATHS["platstdlib"], Path(anabranch.__file__).parent)
)
_PACKAGES = tuple(f"{Path(_PATHS[name])}{os.sep}" for name in ("purelib", "platlib"))
_MAX_OPENED = 10_000


class OpenedFiles:
    """Recorder of the regular files that one thread opens while a sweep makes runs of schemes in Python."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.thread: int | None = None
        self._is_installed = False

    def begin(self) -> None:
        """Starts to record the files that the calling thread opens. The hook stays for the life of the process."""
        self.paths.clear()
        self.thread = threading.get_ident()
        if not self._is_installed:
            self._is_installed = True
            sys.addaudithook(self._hook)

    def end(self) -> None:
        self.thread = None

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or threading.get_ident() != self.thread or len(self.paths) >= _MAX_OPENED:
            return
        if isinstance(arguments[0], (str, bytes)):
            self.paths.add(os.path.abspath(os.fsdecode(arguments[0])))


OPENED_FILES = OpenedFiles()


def stamps() -> dict[str, str]:
    """Returns a stamp of each file: modules outside Python's library, and files that schemes opened."""
    found = {path: stamp_of(path) for path in sorted({*_modules(), *OPENED_FILES.paths}) if not _is_covered(path)}
    return {path: stamp for path, stamp in found.items() if stamp is not None}


def is_edited() -> bool:
    """Returns `True` if the file of a module was written after this process may have loaded it."""
    loaded = (path for path in _modules() if not _is_covered(path) and os.path.isfile(path))
    return any(os.path.getmtime(path) > _LOADED_AT for path in loaded)


def stamp_of(path: str) -> str | None:
    """Returns a hash of a regular file.

    The files of installed packages are large. For such a file, the function returns its size and time instead.
    """
    try:
        if not os.path.isfile(path):
            return None
        if path.startswith(_PACKAGES):
            state = os.stat(path)
            return f"{state.st_size} {state.st_mtime_ns}"
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


def _modules() -> set[str]:
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return {os.path.abspath(path) for path in files if isinstance(path, str)}


def _is_covered(path: str) -> bool:
    if path.endswith(".pyc"):
        return True
    return path.startswith(_COVERED) and not path.startswith(_PACKAGES)
