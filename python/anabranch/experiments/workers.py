"""Processes that trace runs and draw figures beside sweeps."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from anabranch.sweeps.workers import Processes

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Worker processes on this machine, started at the first task, and a folder for their temporary files.

    Leaving the `with` block waits for running tasks, or ends the processes at once after an exception. The folder is
    removed in both cases.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1
        self._processes: Processes | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._processes is not None:
            self._processes.close(at_once=kind is not None)
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def folder(self) -> Path:
        """Folder for temporary files of the workers."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="anabranch-studies-", ignore_cleanup_errors=True)
        return Path(self._folder.name)

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submits a call of a module's function to one of the processes."""
        if self._processes is None:
            self._processes = Processes(self.count)
        return self._processes.executor.submit(work, *args, **kwargs)
