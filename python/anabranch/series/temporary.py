"""Temporary folder with the lifetime of the objects that use it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """New folder, which is removed with its content when this object is, or when the program ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="anabranch-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
