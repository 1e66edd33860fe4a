"""`[[flow]]`: an association, and its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anabranch.scenario import tables


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Flow(tables.Flow):
    """One association and what is sent over it, `[[flow]]`.

    >>> Flow(kind="file", size="8 MB").kind
    'file'
    """

    @classmethod
    def of_clip(cls, clip: str, *, frames: int | None = None, **keys: Any) -> Flow:
        """The flow of a clip: `photographs`, `synthetic` or a file, of which the first `frames` are sent.

        It is encoded as `anabranch video encode` does it, and kept in the user's folder of caches. `keys` are those of
        a flow. Needs `pip install 'anabranch[video]'`. Raises `VideoError` if it cannot be read or encoded.
        """
        from anabranch.video.kept import kept_clip
        from anabranch.video.user_clip import Reading

        return cls(kind="video", trace=str(kept_clip(clip, Reading(frames=frames)).folder / "trace.csv"), **keys)
