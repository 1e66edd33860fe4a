"""A temporary folder that is removed with the last object that needs it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path


class TemporaryFolder:
    """A new folder, removed with all that is in it when this object is, or when the program ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="anabranch-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
