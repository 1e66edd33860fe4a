"""The exception of this part."""

from __future__ import annotations

from anabranch.errors import AnabranchError


class PaperError(AnabranchError):
    """A paper's data cannot be read, something in it is wrong, or what was asked for is not in it."""
